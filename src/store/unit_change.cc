#include "store/unit_change.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "store/json.h"
#include "store/merge.h"

namespace ceems::store {
namespace {

/// A stored map. One that something else damaged counts as empty and is replaced.
model::MetricMap stored_map(std::string_view text, std::string_view what) {
  auto map = parse_metric_map(text);
  if (map) {
    return std::move(*map);
  }
  log::warn("malformed map in the data base counts as empty",
            {{"row", printable(what)}, {"err", map.error().message}});
  return {};
}

/// JSON object text of a manager, or "{}" for anything else.
std::string object_text(std::string_view text, std::string_view what) {
  std::string out;
  if (!append_json_object(out, text)) {
    if (!text.empty() && text != "null") {
      log::warn("malformed object of a unit is left out", {{"unit", printable(what)}});
    }
    return "{}";
  }
  return out;
}

model::MetricMap finite_map(const model::MetricMap& map) {
  return add_maps({}, map);
}

/// A metric of the window; nothing where no updater said anything.
const model::MetricMap& window_map(const model::Unit& unit, std::size_t metric) {
  static const model::MetricMap nothing;
  return unit.has_metric[metric] ? unit.metrics[metric] : nothing;
}

/// Which of the rows with its cluster and uuid are those of a unit.
struct Match {
  const StoredUnit* row = nullptr;
  const StoredUnit* stale = nullptr;  ///< a pending row beside the started one
};

Match match(const model::Unit& unit, std::span<const StoredUnit> stored) {
  const auto pending = [](const StoredUnit& row) { return row.started_at_ts <= 0; };
  const bool started = unit.started_at_ts > 0;
  Match found;
  const StoredUnit* waiting = nullptr;
  for (const StoredUnit& row : stored) {
    if (started ? row.started_at_ts == unit.started_at_ts
                : pending(row) && row.started_at == unit.started_at) {
      found.row = &row;
    } else if (started && pending(row)) {
      waiting = &row;
    }
  }
  if (found.row == nullptr) {
    found.row = waiting;  // it has started since
  } else if (waiting != nullptr) {
    found.stale = waiting;
  }
  return found;
}

MapTexts merged_maps(const model::Unit& unit,
                     const StoredUnit* old,
                     const model::MetricMap& times) {
  MapTexts texts;
  model::MetricMap old_times;
  AverageWeights weights;
  if (old != nullptr) {
    old_times = stored_map(old->maps[0], unit.uuid);
    weights = stored_map(old->maps.back(), unit.uuid);
  }
  texts[0] = old == nullptr ? metric_map_text(times) : metric_map_text(add_maps(old_times, times));
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    const model::MetricMap& window = window_map(unit, m);
    if (old != nullptr) {
      texts[m + 1] = metric_map_text(merge_metric(
          static_cast<model::Metric>(m), stored_map(old->maps[m + 1], unit.uuid), old_times,
          {.map = window, .times = times, .times_counted = false}, weights));
    } else {
      texts[m + 1] = unit.has_metric[m] ? metric_map_text(window) : "null";
    }
  }
  texts.back() = metric_map_text(weights);
  return texts;
}

/// The entries with these names.
model::MetricMap only(const model::MetricMap& map, std::span<const std::string> names) {
  model::MetricMap result;
  for (const std::string& name : names) {
    if (const auto found = map.find(name); found != map.end()) {
      result.insert(*found);
    }
  }
  return result;
}

}  // namespace

UnitChange change_of(const Batch& batch,
                     const model::Unit& unit,
                     std::span<const StoredUnit> stored) {
  const auto [old, stale] = match(unit, stored);
  UnitChange change;
  change.is_new = old == nullptr;
  change.username = old != nullptr && !old->username.empty() ? old->username : unit.username;
  change.project = old != nullptr && !old->project.empty() ? old->project : unit.project;
  if (stale != nullptr) {
    change.calls.push_back({WriterStatement::kDeleteUnit, {stale->id}});
    change.moved_from.push_back(stale->last_updated_at_ts);
  }
  if (old != nullptr && old->ended_at_ts > 0 && old->ended_at_ts == unit.ended_at_ts) {
    return change;  // reported again
  }
  change.counts = true;
  if (old != nullptr) {
    change.moved_from.push_back(old->last_updated_at_ts);
  }
  change.times = finite_map(unit.total_time_seconds);
  if (old != nullptr && unit.ended_at_ts > 0 && unit.ended_at_ts <= batch.window.start_ms) {
    // Managers deliver the whole time of a unit that ended before the window, for its first
    // sighting. Of a known unit a part is counted already.
    const model::MetricMap counted = stored_map(old->maps[0], unit.uuid);
    for (auto& [name, value] : change.times) {
      value = std::max(0.0, value - value_or_zero(counted, name));
    }
  }
  std::string allocation = object_text(unit.allocation, unit.uuid);
  if (allocation == "{}" && old != nullptr && !old->allocation.empty()) {
    allocation = object_text(old->allocation, unit.uuid);
  }
  const auto kept = [row = old](std::string StoredUnit::* before, const std::string& now) {
    return row != nullptr && !(row->*before).empty() ? row->*before : now;
  };
  const bool created = old != nullptr && old->created_at_ts > 0;
  WriterCall call{.statement =
                      old == nullptr ? WriterStatement::kInsertUnit : WriterStatement::kUpdateUnit};
  auto& values = call.values;
  values.reserve(35);
  if (old == nullptr) {
    values.insert(values.end(), {batch.cluster.id, unit.uuid, unit.resource_manager});
  }
  values.emplace_back(kept(&StoredUnit::name, unit.name));
  values.emplace_back(change.project);
  values.emplace_back(kept(&StoredUnit::groupname, unit.groupname));
  values.emplace_back(change.username);
  values.emplace_back(created ? old->created_at : unit.created_at);
  values.emplace_back(created ? old->created_at_ts : unit.created_at_ts);
  values.insert(values.end(), {unit.started_at, unit.started_at_ts, unit.ended_at, unit.ended_at_ts,
                               unit.elapsed, unit.state});
  values.emplace_back(std::move(allocation));
  values.emplace_back(object_text(unit.tags, unit.uuid));
  values.emplace_back(std::int64_t{unit.ignore ? 1 : 0});
  values.emplace_back((old == nullptr ? 0 : old->num_updates) + 1);
  values.emplace_back(batch.updated);
  values.emplace_back(batch.window.end_ms);
  for (std::string& text : merged_maps(unit, old, change.times)) {
    values.emplace_back(std::move(text));
  }
  if (old != nullptr) {
    values.emplace_back(old->id);
  }
  change.calls.push_back(std::move(call));
  return change;
}

UnitFill fill_of(const model::Unit& unit,
                 std::span<const std::string> times,
                 std::span<const StoredUnit> stored) {
  const StoredUnit* row = match(unit, stored).row;
  UnitFill fill;
  if (row == nullptr) {
    return fill;
  }
  fill.last_updated_at_ts = row->last_updated_at_ts;
  fill.username = row->username;
  fill.project = row->project;
  const model::MetricMap old_times = stored_map(row->maps[0], unit.uuid);
  const model::MetricMap window_times = finite_map(unit.total_time_seconds);
  AverageWeights weights = stored_map(row->maps.back(), unit.uuid);
  MapTexts texts = row->maps;
  texts[0] = metric_map_text(add_maps(old_times, only(window_times, times)));
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    if (unit.has_metric[m]) {
      texts[m + 1] = metric_map_text(merge_metric(
          static_cast<model::Metric>(m), stored_map(row->maps[m + 1], unit.uuid), old_times,
          {.map = unit.metrics[m], .times = window_times, .times_counted = true}, weights));
    }
  }
  texts.back() = metric_map_text(weights);
  WriterCall& call = fill.call.emplace(WriterCall{.statement = WriterStatement::kFillUnit});
  call.values.assign(texts.begin(), texts.end());
  call.values.emplace_back(row->id);
  return fill;
}

void UsageRow::load(const AnswerRow& row, std::string_view what) {
  constexpr std::size_t kFirstMap = 3;
  fresh_ = false;
  id_ = row.integer(0);
  num_units_ = row.integer(1);
  num_updates_ = row.integer(2);
  times_ = stored_map(row.text(kFirstMap), what);
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    maps_[m] = stored_map(row.text(kFirstMap + 1 + m), what);
    has_map_[m] = true;
  }
  weights_ = stored_map(row.text(kFirstMap + 1 + model::kMetricCount), what);
}

void UsageRow::add(const model::Unit& unit, const UnitChange& change) {
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    const model::MetricMap& window = window_map(unit, m);
    if (fresh_) {
      maps_[m] = finite_map(window);
      has_map_[m] = unit.has_metric[m];
    } else {
      maps_[m] =
          merge_metric(static_cast<model::Metric>(m), std::move(maps_[m]), times_,
                       {.map = window, .times = change.times, .times_counted = false}, weights_);
      has_map_[m] = true;
    }
  }
  times_ = add_maps(std::move(times_), change.times);
  num_units_ += change.is_new ? 1 : 0;
  num_updates_ += 1;
  fresh_ = false;
}

void UsageRow::fill(const model::Unit& unit, std::span<const std::string> times) {
  const model::MetricMap window_times = finite_map(unit.total_time_seconds);
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    if (unit.has_metric[m]) {
      maps_[m] = merge_metric(
          static_cast<model::Metric>(m), std::move(maps_[m]), times_,
          {.map = unit.metrics[m], .times = window_times, .times_counted = true}, weights_);
    }
  }
  times_ = add_maps(std::move(times_), only(window_times, times));
}

std::optional<WriterCall> UsageRow::fill_call(bool daily) const {
  if (id_ == 0) {
    return std::nullopt;
  }
  WriterCall call{.statement = daily ? WriterStatement::kFillDay : WriterStatement::kFillUsage};
  call.values.emplace_back(metric_map_text(times_));
  for (const auto& map : maps_) {
    call.values.emplace_back(metric_map_text(map));
  }
  call.values.emplace_back(metric_map_text(weights_));
  call.values.emplace_back(id_);
  return call;
}

WriterCall UsageRow::call(const Batch& batch,
                          bool daily,
                          const std::string& username,
                          const std::string& project) const {
  WriterCall call;
  if (id_ != 0) {
    call.statement = daily ? WriterStatement::kUpdateDay : WriterStatement::kUpdateUsage;
  } else {
    call.statement = daily ? WriterStatement::kInsertDay : WriterStatement::kInsertUsage;
    call.values = {batch.cluster.id, username, project, resource_manager_, groupname_};
  }
  auto& values = call.values;
  values.insert(values.end(), {num_units_, num_updates_});
  values.emplace_back(daily ? batch.day : batch.updated);
  values.emplace_back(daily ? batch.day_ms : batch.window.end_ms);
  values.emplace_back(metric_map_text(times_));
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    const model::MetricMap& map = maps_[m];
    const bool joined = num_updates_ > 1;
    const auto metric = static_cast<model::Metric>(m);
    values.emplace_back(!has_map_[m] ? "null"
                        : joined
                            ? metric_map_text(zero_without_weight(metric, map, times_, weights_))
                            : metric_map_text(map));
  }
  values.emplace_back(metric_map_text(weights_));
  if (id_ != 0) {
    values.emplace_back(id_);
  }
  return call;
}

}  // namespace ceems::store
