#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::cacct {

/// What a field of a unit holds.
enum class FieldKind : std::uint8_t {
  kText,
  kRatio,   ///< numbers by name, shown with two decimals
  kAmount,  ///< numbers by name, shown with six decimals
  kWhole,   ///< numbers by name, shown without decimals
};

/// A field that can be shown. In a box, cells are cut to pieces of at most `max` columns.
struct Field {
  std::string name;   ///< in lower case, as --format takes it
  std::string label;  ///< as the help, --parsable2 and messages show it
  std::string tag;    ///< the name in the answers of the API server; for kInstant: of the query
  std::string title;
  std::size_t min = 5;
  std::size_t max = 8;
  FieldKind kind = FieldKind::kText;
  bool by_default = false;
  bool in_long = true;  ///< shown with --long
  std::string help;
  bool instant = false;  ///< comes from an instant query of the configuration, not from the server
  bool right = false;    ///< aligned to the right (a width was given, as in %10)
};

/// All fields of the server, in the order in which tables show them.
std::span<const Field> server_fields();

/// Parses the value of --format: names in any case, joined by commas, each with an optional width:
/// `name%20` (aligned to the right, as in sacct) or `name%-20` (to the left). Empty parts are
/// skipped. The result is in the order given, each field once. kInvalidArgument names an unknown
/// field and suggests the nearest one.
Result<std::vector<Field>> parse_format(std::string_view text, std::span<const Field> known);

/// The same fields in the order of `known`.
std::vector<Field> in_table_order(std::vector<Field> chosen, std::span<const Field> known);

/// "avg_cpu_usage" -> 2 decimals and so on.
std::string number_text(FieldKind kind, double value);

}  // namespace ceems::cacct
