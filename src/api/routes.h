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

/// How an endpoint interprets `from` and `to`.
enum class WindowKind : std::uint8_t {
  kNone,     ///< not at all
  kEnded,    ///< parse_window(), unless units are requested by id
  kListed,   ///< the same, unless units are looked for without a period
  kOwn,      ///< in its own way
  kRounded,  ///< parse_rounded_window()
};

/// The type of the rows in an answer.
enum class Shape : std::uint8_t {
  kUnits,
  kUsage,
  kUsers,
  kProjects,
  kClusters,
  kStats,
  kSeries,
  kIdentity,
  kSite,
  kReports,
  kIdle,
  kBudgets,
  kBill,
  // The answer is one object:
  kUnitTable,
  kUnitSums,
  kUsageSeries,
  kNodeTable,
  kNodeUnits,
  kGrid,
  kFindings,
  kGpuBoard,
  kDigest,
  kNothing,  ///< null
};
/// Whether `data` is an object, not a list of rows.
constexpr bool is_object(Shape shape) {
  return shape >= Shape::kUnitTable && shape < Shape::kNothing;
}
/// Fields of a row of that shape. Empty for shapes that do not come from the database.
std::span<const store::Field> fields_of(Shape shape);

/// One endpoint below {prefix}/api/v1/.
struct Route {
  std::string_view path;  ///< "units/admin"
  Caller caller = Caller::kAdmin;
  ApiHandler handler = nullptr;
  Shape shape = Shape::kNothing;
  ParamSet params = {};  ///< others are ignored
  WindowKind window = WindowKind::kNone;
  /// Number of columns in the key of a row, for listings that accept `limit` and `cursor`;
  /// otherwise 0.
  std::size_t page_key = 0;
  /// It accepts them in its own way.
  bool table = false;
  /// The answer depends only on the request, the caller and the database, so it gets an entity tag.
  bool tagged = true;
  /// What admins and support read there is data of other people, which the audit records.
  bool audited = true;
  std::string_view summary = {};
};

/// All endpoints. The OpenAPI document is generated from them.
std::span<const Route> all_routes();

/// The route with exactly this path, or null.
const Route* find_route(std::string_view path);

}  // namespace ceems::api
