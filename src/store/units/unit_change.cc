#include "store/units/unit_change.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/json_reader.h"
#include "base/log.h"
#include "base/strings.h"
#include "store/facts/rows.h"
#include "store/json.h"
#include "store/merge.h"
#include "store/schema/tables.h"
#include "store/units/stand_ins.h"

namespace ceems::store {
namespace {

/// Parses a stored map. If another program has damaged it, it counts as empty and is replaced.
model::MetricMap stored_map(std::string_view text, std::string_view what) {
  auto map = parse_metric_map(text);
  if (map) {
    return std::move(*map);
  }
  log::warn("malformed map in the database, taken as empty",
            {{"row", printable(what)}, {"err", map.error().message}});
  return {};
}

model::MetricMap finite_map(const model::MetricMap& map) {
  return add_maps({}, map);
}

/// The window's map of a metric; empty if no updater reported it.
const model::MetricMap& window_map(const model::Unit& unit, std::size_t metric) {
  static const model::MetricMap nothing;
  return unit.has_metric[metric] ? unit.metrics[metric] : nothing;
}

using Maps = std::array<model::MetricMap, model::kMetricCount>;

bool has_total(const Maps& maps, model::Metric metric) {
  return maps.at(static_cast<std::size_t>(metric)).contains("total");
}

/// Whether the energy is known, of CPUs or of GPUs.
bool has_energy(const Maps& maps) {
  return has_total(maps, model::Metric::kTotalCpuEnergyUsageKwh) ||
         has_total(maps, model::Metric::kTotalGpuEnergyUsageKwh);
}

/// The rows, of those with its cluster and uuid, that belong to a unit.
struct Match {
  const StoredUnit* row = nullptr;
  const StoredUnit* stale = nullptr;  ///< a pending row beside the started one
};

Match match(const model::Unit& unit, std::span<const StoredUnit> stored) {
  const auto pending = [](const StoredUnit& row) { return row.unit.started_at_ts <= 0; };
  const bool started = unit.started_at_ts > 0;
  Match found;
  const StoredUnit* waiting = nullptr;
  for (const StoredUnit& row : stored) {
    if (started ? row.unit.started_at_ts == unit.started_at_ts
                : pending(row) && row.unit.started_at == unit.started_at) {
      found.row = &row;
    } else if (started && pending(row)) {
      waiting = &row;
    }
  }
  if (found.row == nullptr) {
    found.row = waiting;  // the unit has started since
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

/// The texts of the row as it is after the window (Column::update).
model::Unit described(const model::Unit& unit, const StoredUnit* old) {
  model::Unit row;
  row.uuid = unit.uuid;
  row.resource_manager = unit.resource_manager;
  const auto known = [old](const model::Unit& newest, std::string model::Unit::* text) {
    return old != nullptr && !(old->unit.*text).empty() ? old->unit.*text : newest.*text;
  };
  row.name = known(unit, &model::Unit::name);
  row.username = known(unit, &model::Unit::username);
  row.project = known(unit, &model::Unit::project);
  row.created_at_ts =
      old != nullptr && old->unit.created_at_ts > 0 ? old->unit.created_at_ts : unit.created_at_ts;
  row.started_at_ts = unit.started_at_ts;
  row.ended_at_ts = unit.ended_at_ts;
  row.state = unit.state;
  const bool given = !unit.allocation.empty() && unit.allocation != "{}";
  row.allocation = given || old == nullptr ? unit.allocation : old->unit.allocation;
  row.tags = unit.tags;
  row.ignore = unit.ignore;
  return row;
}

FactSource fact_source(std::string_view cluster_id, const MapTexts& texts) {
  FactSource source;
  source.cluster_id = cluster_id;
  std::copy_n(texts.begin(), source.maps.size(), source.maps.begin());
  return source;
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

/// Whether the window has the whole time of a unit: managers report it of one that ended before the
/// window, as it may be new.
bool has_whole_time(const Batch& batch, const model::Unit& unit) {
  return unit.ended_at_ts > 0 && unit.ended_at_ts <= batch.window.start_ms;
}

/// The unit without what it measured, so that nothing is added to its row.
model::Unit without_measurements(model::Unit unit) {
  unit.total_time_seconds.clear();
  unit.has_metric.fill(false);
  unit.peak_memory_bytes.reset();
  unit.gpu_idle_share.reset();
  unit.idle_kwh.reset();
  unit.not_used_kwh.reset();
  return unit;
}

UnitChange merge(const Batch& batch,
                 const model::Unit& unit,
                 const StoredUnit* old,
                 const StoredUnit* stale,
                 bool new_owner) {
  UnitChange change;
  change.is_new = old == nullptr;
  const model::Unit& known = old != nullptr ? old->unit : unit;
  change.username = known.username.empty() ? unit.username : known.username;
  change.project = known.project.empty() ? unit.project : known.project;
  if (stale != nullptr) {
    change.calls.push_back({WriterStatement::kDeleteUnit, {stale->id}});
    change.moved_from.push_back(stale->last_updated_at_ts);
    change.facts.push_back(delete_facts(batch.cluster.id, unit.uuid, stale->unit.started_at_ts));
  }
  const bool again =
      old != nullptr && old->unit.ended_at_ts > 0 && old->unit.ended_at_ts == unit.ended_at_ts;
  if (again && !new_owner) {
    return change;
  }
  change.counts = !again;
  if (old != nullptr) {
    change.moved_from.push_back(old->last_updated_at_ts);
  }
  change.times = finite_map(unit.total_time_seconds);
  if (old != nullptr && has_whole_time(batch, unit)) {
    // Earlier windows have counted a part of that time.
    const model::MetricMap counted = stored_map(old->maps[0], unit.uuid);
    for (auto& [name, value] : change.times) {
      value = std::max(0.0, value - value_or_zero(counted, name));
    }
  }
  MapTexts maps = merged_maps(unit, old, change.times);
  if (old != nullptr && old->unit.started_at_ts != unit.started_at_ts && stale == nullptr) {
    change.facts.push_back(delete_facts(batch.cluster.id, unit.uuid, old->unit.started_at_ts));
  }
  const model::Unit row = described(unit, old);
  FactSource facts = fact_source(batch.cluster.id, maps);
  facts.unit = &row;
  facts.window = &unit;
  facts.window_gpu_seconds = value_or_zero(change.times, "alloc_gputime");
  change.facts.push_back(put_facts(facts));
  change.calls.push_back(
      {old == nullptr ? WriterStatement::kInsertUnit : WriterStatement::kUpdateUnit,
       unit_values(kUnits, batch, unit, old, std::move(maps))});
  return change;
}

}  // namespace

UnitChange change_of(const Batch& batch,
                     const model::Unit& unit,
                     std::span<const StoredUnit> stored) {
  const auto [old, stale] = match(unit, stored);
  const auto reconciled = reconcile(
      unit, old, old != nullptr ? stored_map(old->maps[0], unit.uuid) : model::MetricMap{},
      has_whole_time(batch, unit));
  if (!reconciled) {
    return merge(batch, unit, old, stale, false);
  }
  const bool ended = old != nullptr && old->unit.ended_at_ts > 0 && unit.ended_at_ts > 0;
  return merge(batch, ended ? without_measurements(reconciled->unit) : reconciled->unit,
               reconciled->stored ? &*reconciled->stored : nullptr, stale, reconciled->new_owner);
}

UnitFill fill_of(std::string_view cluster_id,
                 const model::Unit& unit,
                 std::span<const std::string> times,
                 std::span<const StoredUnit> stored) {
  const StoredUnit* row = match(unit, stored).row;
  UnitFill fill;
  if (row == nullptr) {
    return fill;
  }
  fill.last_updated_at_ts = row->last_updated_at_ts;
  fill.username = row->unit.username;
  fill.project = row->unit.project;
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
  FactSource facts = fact_source(cluster_id, texts);
  facts.unit = &row->unit;
  facts.window = &unit;
  facts.window_gpu_seconds = value_or_zero(window_times, "alloc_gputime");
  fill.facts = fill_facts_of(facts);
  WriterCall& call = fill.call.emplace(WriterCall{.statement = WriterStatement::kFillUnit});
  call.values.assign(texts.begin(), texts.end());
  call.values.emplace_back(row->id);
  return fill;
}

void UsageRow::load(const AnswerRow& row, std::string_view what) {
  fresh_ = false;
  id_ = row.integer(0);
  std::size_t place = 0;
  for (const Column& column : kUsage.columns) {
    if (!builds_on_stored(column)) {
      continue;
    }
    ++place;
    if (column.update == Update::kCountNew) {
      num_units_ = row.integer(place);
    } else if (column.update == Update::kCount) {
      num_updates_ = row.integer(place);
    } else if (column.update == Update::kWeights) {
      weights_ = stored_map(row.text(place), what);
    } else if (const auto* metric = std::get_if<model::Metric>(&column.source)) {
      maps_.at(static_cast<std::size_t>(*metric)) = stored_map(row.text(place), what);
      has_map_.at(static_cast<std::size_t>(*metric)) = true;
    } else {
      times_ = stored_map(row.text(place), what);
    }
  }
}

void UsageRow::add(const model::Unit& unit, const UnitChange& change) {
  add_time_with_energy(has_energy(maps_), times_, has_energy(unit.metrics), change.times, false,
                       weights_);
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
  // Energy of GPUs that comes after that of CPUs is of times that are counted.
  if (has_energy(unit.metrics) &&
      (has_total(unit.metrics, model::Metric::kTotalCpuEnergyUsageKwh) ||
       !has_total(maps_, model::Metric::kTotalCpuEnergyUsageKwh))) {
    add_time_with_energy(has_energy(maps_), times_, true, window_times, true, weights_);
  }
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
  const bool stored = id_ != 0;
  WriterCall call;
  if (stored) {
    call.statement = daily ? WriterStatement::kUpdateDay : WriterStatement::kUpdateUsage;
  } else {
    call.statement = daily ? WriterStatement::kInsertDay : WriterStatement::kInsertUsage;
  }
  const UsageNames names{.cluster_id = batch.cluster.id,
                         .resource_manager = resource_manager_,
                         .project = project,
                         .groupname = groupname_,
                         .username = username};
  for (const Column& column : kUsage.columns) {
    if (!stored || column.update != Update::kNever) {
      call.values.push_back(value(column, batch, daily, names));
    }
  }
  if (stored) {
    call.values.emplace_back(id_);
  }
  return call;
}

SqlValue UsageRow::value(const Column& column,
                         const Batch& batch,
                         bool daily,
                         const UsageNames& names) const {
  switch (column.update) {
    case Update::kCountNew:
      return num_units_;
    case Update::kCount:
      return num_updates_;
    case Update::kSum:
    case Update::kMean:
    case Update::kLeast:
    case Update::kGreatest: {
      const auto* metric = std::get_if<model::Metric>(&column.source);
      return metric == nullptr ? metric_map_text(times_) : map_text(*metric);
    }
    case Update::kWeights:
      return metric_map_text(weights_);
    default:
      break;
  }
  if (const auto* text = std::get_if<std::string UsageNames::*>(&column.source)) {
    return names.**text;
  }
  if (column.kind == ColumnKind::kMoment) {
    return daily ? batch.day_ms : batch.window.end_ms;
  }
  return daily ? batch.day : batch.updated;
}

std::string UsageRow::map_text(model::Metric metric) const {
  const auto place = static_cast<std::size_t>(metric);
  const model::MetricMap& map = maps_.at(place);
  if (!has_map_.at(place)) {
    return "null";
  }
  const bool joined = num_updates_ > 1;
  return joined ? metric_map_text(zero_without_weight(metric, map, times_, weights_))
                : metric_map_text(map);
}

}  // namespace ceems::store
