#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "api/handlers/handlers.h"
#include "api/request/params.h"
#include "store/fields.h"

namespace ceems::api {

/// Who may call an endpoint. The zero value is the strictest.
enum class Caller : std::uint8_t { kAdmin, kUser, kAnyone };

/// What `from` and `to` of an endpoint mean.
enum class WindowKind : std::uint8_t {
  kNone,     ///< nothing, or something of its own
  kEnded,    ///< parse_window(); not when units are asked for by id
  kRounded,  ///< parse_rounded_window()
};

/// What answers hold.
enum class Shape : std::uint8_t {
  kUnits,
  kUsage,
  kUsers,
  kProjects,
  kClusters,
  kStats,
  kSeries,
  kIdentity,
  kNothing,  ///< null
};
/// Fields of a row of that shape; empty for shapes that are no rows of the data base.
std::span<const store::Field> fields_of(Shape shape);

/// One endpoint below {prefix}/api/v1/.
struct Route {
  std::string_view path;  ///< "units/admin"
  Caller caller = Caller::kAdmin;
  ApiHandler handler = nullptr;
  Shape shape = Shape::kNothing;
  ParamSet params = {};  ///< others are not read
  WindowKind window = WindowKind::kNone;
  /// Texts of a row's key, for listings that take `limit` and `cursor`; else 0.
  std::size_t page_key = 0;
  /// The answer follows from the request, the caller and the data base alone, so it gets an entity
  /// tag.
  bool tagged = true;
  std::string_view summary = {};
};

/// All endpoints; tests walk them, the OpenAPI document is made of them.
std::span<const Route> all_routes();

/// Exact match; null when there is none.
const Route* find_route(std::string_view path);

}  // namespace ceems::api
