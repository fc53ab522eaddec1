#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace ceems::store {

enum class FieldKind {
  kText,
  kInteger,
  kMetrics,  ///< JSON object of numbers
  kObject,   ///< JSON object
  kList,     ///< JSON array of strings
};

/// One field of a kind of row: its name in answers and `field` parameters, and the column it is
/// read from. The only names that ever become part of a query.
struct Field {
  std::string_view name;
  std::string_view column;
  FieldKind kind = FieldKind::kText;
  bool omit_empty = true;  ///< left out of answers where empty or 0; else shown as empty
};

// Fields in the order of answers. The spans live as long as the program.
std::span<const Field> unit_fields();
std::span<const Field> usage_fields();
std::span<const Field> user_fields();  ///< of admins too
std::span<const Field> project_fields();
std::span<const Field> cluster_fields();
std::span<const Field> stat_fields();

/// Index of the field with this name, exactly.
std::optional<std::size_t> find_field(std::span<const Field> fields, std::string_view name);

/// The place of usage_fields() where total_time_seconds stands; the twelve metrics follow it in the
/// order of model::Metric.
inline constexpr std::size_t kUsageTimes = 6;

}  // namespace ceems::store
