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

/// A field of a row in answers: its name there and in `field` parameters, and its column. No other
/// names ever become part of a query.
struct Field {
  std::string_view name;
  std::string_view column;
  FieldKind kind = FieldKind::kText;
  bool omit_empty = true;         ///< left out of an answer if it is empty or 0
  int reference = 0;              ///< Column::reference
  std::string_view help = {};     ///< what it means
  std::string_view example = {};  ///< JSON
};

// Fields in the order of answers. The spans are valid until the program ends.
std::span<const Field> unit_fields();
std::span<const Field> usage_fields();
std::span<const Field> user_fields();  ///< of users and admins
std::span<const Field> project_fields();
std::span<const Field> cluster_fields();
std::span<const Field> stat_fields();

/// The index of the field with exactly this name; nothing if there is none.
std::optional<std::size_t> find_field(std::span<const Field> fields, std::string_view name);

/// The indexes in unit_fields() of UnitKey: cluster_id, uuid, started_at.
std::span<const std::size_t> unit_key_fields();
/// The indexes in usage_fields() of cluster_id, username and project.
std::span<const std::size_t> usage_key_fields();

/// The index of total_time_seconds in usage_fields(). The metrics follow it in the order of
/// model::Metric.
inline constexpr std::size_t kUsageTimes = 6;

/// What a SELECT has for the field: its column, or an empty map if tables of this version of the
/// reference lack it.
constexpr std::string_view selected(const Field& field, int reference) {
  return field.reference <= reference ? field.column : "'{}'";
}

/// The form in which answers show a column of this kind.
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
                          .reference = column.reference,
                          .help = column.help,
                          .example = column.example});
      }
    }
  }
  return fields;
}

}  // namespace ceems::store
