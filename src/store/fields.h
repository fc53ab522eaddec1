#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/schema/column.h"

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
  bool omit_empty = true;         ///< left out of answers where empty or 0; else shown as empty
  std::string_view help = {};     ///< what it means
  std::string_view example = {};  ///< JSON
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

/// The places in unit_fields() of what tells units apart: cluster_id, uuid, started_at.
std::span<const std::size_t> unit_key_fields();
/// The places in usage_fields() of cluster_id, username and project.
std::span<const std::size_t> usage_key_fields();

/// The place of usage_fields() where total_time_seconds stands; the twelve metrics follow it in the
/// order of model::Metric.
inline constexpr std::size_t kUsageTimes = 6;

/// How answers show a column of the kind.
constexpr FieldKind field_kind(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kMoment:
    case ColumnKind::kNumber:
      return FieldKind::kInteger;
    case ColumnKind::kObject:
      return FieldKind::kObject;
    case ColumnKind::kMetrics:
      return FieldKind::kMetrics;
    default:
      return FieldKind::kText;
  }
}

/// The fields of a table's rows, in the order of answers.
constexpr std::vector<Field> answer_fields(const Table& table) {
  std::vector<Field> fields;
  for (const Place place :
       {Place::kFirst, Place::kBody, Place::kLate, Place::kMetrics, Place::kLast}) {
    for (const Column& column : table.columns) {
      if (column.place == place) {
        fields.push_back({.name = column.name,
                          .column = column.name,
                          .kind = field_kind(column.kind),
                          .omit_empty = !column.always,
                          .help = column.help,
                          .example = column.example});
      }
    }
  }
  return fields;
}

}  // namespace ceems::store
