#include "store/units/unit_row.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/json_reader.h"
#include "base/log.h"
#include "base/strings.h"
#include "store/json.h"
#include "store/schema/table_sql.h"

namespace ceems::store {
namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

/// The JSON object that a manager reported; "{}" for any other text.
std::string object_text(std::string_view text, std::string_view what) {
  std::string out;
  if (!append_json_object(out, text)) {
    if (!text.empty() && text != "null") {
      log::warn("malformed JSON object of a unit, taken as empty", {{"unit", printable(what)}});
    }
    return "{}";
  }
  return out;
}

/// Whether the column helps to find the row of a unit.
bool tells_units_apart(const Table& table, const Column& column) {
  return column.kind == ColumnKind::kMoment ||
         (is_key(table, column.name) && !std::holds_alternative<ClusterOfWindow>(column.source));
}

std::size_t place_of(const Column& map) {
  if (map.update == Update::kWeights) {
    return MapTexts().size() - 1;
  }
  const auto* metric = std::get_if<model::Metric>(&map.source);
  return metric == nullptr ? 0 : static_cast<std::size_t>(*metric) + 1;
}

/// The value of a column according to the unit.
SqlValue delivered(const Column& column, const Batch& batch, const model::Unit& unit) {
  return std::visit(
      Overloaded{
          [&](ClusterOfWindow) -> SqlValue { return batch.cluster.id; },
          [&](EndOfWindow) -> SqlValue {
            if (column.kind == ColumnKind::kMoment) {
              return batch.window.end_ms;
            }
            return batch.updated;
          },
          [&](const TimeOfUnit& time) -> SqlValue { return unit.*time.text; },
          [&](std::string model::Unit::* text) -> SqlValue {
            return column.kind == ColumnKind::kObject ? object_text(unit.*text, unit.uuid)
                                                      : unit.*text;
          },
          [&](std::int64_t model::Unit::* number) -> SqlValue { return unit.*number; },
          [&](bool model::Unit::* flag) -> SqlValue { return std::int64_t{unit.*flag ? 1 : 0}; },
          [](const auto& /*other*/) -> SqlValue { return std::string(); },
      },
      column.source);
}

bool is_known(const Column& column, const model::Unit& unit) {
  return std::visit(Overloaded{
                        [&](const TimeOfUnit& time) { return unit.*time.moment > 0; },
                        [&](std::string model::Unit::* text) { return !(unit.*text).empty(); },
                        [&](std::int64_t model::Unit::* number) { return unit.*number > 0; },
                        [](const auto& /*other*/) { return false; },
                    },
                    column.source);
}

SqlValue merged(const Column& column,
                const Batch& batch,
                const model::Unit& unit,
                const StoredUnit* stored,
                MapTexts& maps) {
  switch (column.update) {
    case Update::kNever:
    case Update::kNewest:
      return delivered(column, batch, unit);
    case Update::kFirstKnown:
      return delivered(column, batch,
                       stored != nullptr && is_known(column, stored->unit) ? stored->unit : unit);
    case Update::kNewestGiven: {
      SqlValue value = delivered(column, batch, unit);
      if (value == SqlValue("{}") && stored != nullptr && is_known(column, stored->unit)) {
        return delivered(column, batch, stored->unit);
      }
      return value;
    }
    case Update::kCount:
      return (stored == nullptr ? 0 : stored->num_updates) + 1;
    case Update::kSum:
    case Update::kMean:
    case Update::kLeast:
    case Update::kGreatest:
    case Update::kWeights:
      return std::move(maps.at(place_of(column)));
    case Update::kCountNew:  // no column of `units`
      break;
  }
  return std::string();
}

}  // namespace

StoredColumns::StoredColumns(const Table& table) {
  for (const Column& column : table.columns) {
    if (!builds_on_stored(column) && !tells_units_apart(table, column)) {
      continue;
    }
    columns_.push_back(&column);
    if (const auto* text = std::get_if<std::string model::Unit::*>(&column.source);
        text != nullptr && *text == &model::Unit::uuid) {
      uuid_ = columns_.size();
    }
  }
}

std::string StoredColumns::names(int reference) const {
  std::string names = "id";
  for (const Column* column : columns_) {
    names += fmt::format(",{}", selected(*column, reference));
  }
  return names;
}

StoredUnit StoredColumns::read(const AnswerRow& row) const {
  StoredUnit stored;
  stored.id = row.integer(0);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = *columns_[i];
    const std::size_t place = i + 1;
    if (column.kind == ColumnKind::kMetrics) {
      stored.maps.at(place_of(column)) = row.text(place);
    } else if (column.update == Update::kCount) {
      stored.num_updates = row.integer(place);
    } else {
      std::visit(
          Overloaded{
              [&](EndOfWindow) { stored.last_updated_at_ts = row.integer(place); },
              [&](const TimeOfUnit& time) { stored.unit.*time.text = row.text(place); },
              [&](std::string model::Unit::* text) { stored.unit.*text = row.text(place); },
              [&](std::int64_t model::Unit::* number) { stored.unit.*number = row.integer(place); },
              [](const auto& /*other*/) {},
          },
          column.source);
    }
  }
  return stored;
}

std::vector<SqlValue> unit_values(const Table& table,
                                  const Batch& batch,
                                  const model::Unit& unit,
                                  const StoredUnit* stored,
                                  MapTexts maps) {
  std::vector<SqlValue> values;
  values.reserve(table.columns.size() + 1);
  for (const Column& column : table.columns) {
    if (stored == nullptr || column.update != Update::kNever) {
      values.push_back(merged(column, batch, unit, stored, maps));
    }
  }
  if (stored != nullptr) {
    values.emplace_back(stored->id);
  }
  return values;
}

}  // namespace ceems::store
