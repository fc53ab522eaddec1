// The part of the writer that fills gaps: it adds the missing metrics of earlier windows.
#include <algorithm>

#include "store/sums/unit_sums.h"
#include "store/units/stored_units.h"
#include "store/writer/gaps.h"
#include "store/writer/session_writer.h"

namespace ceems::store {

Result<std::vector<Gap>> SessionWriter::gaps(std::string_view cluster_id) {
  const MutexLock lock(mutex_);
  return read_gaps(*session_, cluster_id);
}

Result<std::vector<model::Unit>> SessionWriter::gap_units(std::int64_t gap_id) {
  const MutexLock lock(mutex_);
  return read_gap_units(*session_, gap_id);
}

Result<> SessionWriter::fill_gap(const GapFill& fill) {
  const MutexLock lock(mutex_);
  return in_transaction(fmt::format("filling a gap of cluster {}", fill.cluster.id),
                        [&] { return fill_in_transaction(fill); });
}

Result<> SessionWriter::fill_in_transaction(const GapFill& fill) {
  CEEMS_TRY(gap, read_gap(*session_, fill.gap_id));
  if (!gap) {
    return fail(ErrorCode::kNotFound, "gap {} does not exist", fill.gap_id);
  }
  const model::Window window = gap->window;
  const Batch batch{.cluster = fill.cluster,
                    .window = window,
                    .updated = {},
                    .day = zone_.day(window.end_ms - 1),
                    .day_ms = zone_.day_start(window.end_ms - 1)};
  UsageRows usage;
  UsageRows days;
  std::set<std::int64_t> moments;
  const std::span<const model::Unit> units(fill.units);
  for (std::size_t begin = 0; begin < units.size(); begin += kUnitsAtOnce) {
    const auto some = units.subspan(begin, std::min(kUnitsAtOnce, units.size() - begin));
    CEEMS_TRY(fill_units(batch, some, fill.times, moments, usage, days));
  }
  CEEMS_TRY(forget_sums(batch, moments));
  std::vector<std::vector<WriterCall>> rows;
  for (const bool daily : {false, true}) {
    for (const auto& [key, row] : daily ? days : usage) {
      if (auto call = row.fill_call(daily)) {
        rows.push_back({std::move(*call)});
      }
    }
  }
  CEEMS_TRY(run_and_log(rows, "row of usage"));
  return set_gap_parts(*session_, fill.gap_id, fill.still_missing);
}

Result<> SessionWriter::fill_units(const Batch& batch,
                                   std::span<const model::Unit> units,
                                   std::span<const std::string> times,
                                   std::set<std::int64_t>& moments,
                                   UsageRows& usage,
                                   UsageRows& days) {
  std::vector<std::string_view> ids;
  for (const model::Unit& unit : units) {
    ids.push_back(unit.uuid);
  }
  CEEMS_TRY(stored, find_units(*session_, batch.cluster.id, ids));
  std::vector<UnitFill> fills;
  std::vector<std::vector<WriterCall>> groups;
  std::vector<std::vector<WriterCall>> facts;
  std::vector<UsageRows::iterator> unknown_usage;
  std::vector<UsageRows::iterator> unknown_days;
  for (std::size_t i = 0; i < units.size(); ++i) {
    fills.push_back(fill_of(batch.cluster.id, units[i], times, stored[i]));
    const UnitFill& one = fills.back();
    if (!one.call) {
      continue;
    }
    groups.push_back({*one.call});
    facts.push_back({*one.facts});
    moments.insert(one.last_updated_at_ts);
    for (auto [rows, unknown] :
         {std::pair(&usage, &unknown_usage), std::pair(&days, &unknown_days)}) {
      const auto [row, fresh] = rows->try_emplace({one.username, one.project}, "", "");
      if (fresh) {
        unknown->push_back(row);
      }
    }
  }
  CEEMS_TRY(run_and_log(groups, "filled unit"));
  CEEMS_TRY(run_and_log(facts, "facts of a filled unit"));
  CEEMS_TRY(load_usage(batch, false, unknown_usage));
  CEEMS_TRY(load_usage(batch, true, unknown_days));
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (fills[i].call) {
      for (UsageRows* rows : {&usage, &days}) {
        rows->at({fills[i].username, fills[i].project}).fill(units[i], times);
      }
    }
  }
  return {};
}

}  // namespace ceems::store
