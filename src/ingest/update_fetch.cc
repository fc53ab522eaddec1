#include "ingest/update_fetch.h"

#include <algorithm>
#include <exception>
#include <set>
#include <string_view>

#include "base/log.h"
#include "store/schema/tables.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kSecond = 1000;
constexpr std::string_view kEverything = "*";

/// The first midnight after a moment. A day has 23 to 25 hours, so 36 hours after its start is the
/// next day wherever the clocks change.
std::int64_t next_midnight(std::int64_t epoch_ms, const TimeZone& zone) {
  constexpr std::int64_t kHour = 3'600'000;
  return zone.day_start(zone.day_start(epoch_ms) + 36 * kHour);
}

/// What a manager repeats would count twice; the last record is the newest.
void drop_repeated(std::vector<model::Unit>& units) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::vector<bool> keep(units.size());
  for (std::size_t i = units.size(); i-- > 0;) {
    keep[i] = seen.emplace(units[i].uuid, units[i].started_at).second;
  }
  std::vector<model::Unit> kept;
  kept.reserve(seen.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (keep[i]) {
      kept.push_back(std::move(units[i]));
    }
  }
  units = std::move(kept);
}

template <typename Wanted>
void clear_metrics(std::vector<model::Unit>& units, const Wanted& wanted) {
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    if (!wanted(static_cast<model::Metric>(m))) {
      continue;
    }
    for (auto& unit : units) {
      unit.metrics[m].clear();
      unit.has_metric[m] = false;
    }
  }
}

bool holds(const std::vector<std::string>& parts, std::string_view part) {
  return std::ranges::find(parts, part) != parts.end();
}

/// Adds the metrics of one updater and notes what is missing.
void run_updater(UpdateSource::NamedUpdater& named,
                 const UpdateRequest& request,
                 Fetched& result,
                 const std::stop_token& stop) {
  std::vector<model::Unit> before = result.update.units;
  auto done = named.updater->update(request, result.update.units, stop);
  Missing missing;
  if (done) {
    missing = std::move(*done);
  } else {
    result.update.units = std::move(before);
    missing = {.parts = {std::string(kEverything)}, .cause = std::move(done).error()};
  }
  if (missing.parts.empty()) {
    return;
  }
  // An earlier updater's figures would be replaced by these, so they must not be there when these
  // are added.
  clear_metrics(result.update.units, [&](model::Metric metric) {
    return named.updater->gives(metric) &&
           (holds(missing.parts, kEverything) ||
            holds(missing.parts, std::string(store::column_name(metric)) + ".*"));
  });
  result.lasting = missing.lasting && (result.lasting || !result.cause);
  if (!result.cause) {
    result.cause = std::move(missing.cause).with_context("updater " + named.id);
  }
  result.update.gaps.push_back(
      {.id = 0, .updater = named.id, .parts = std::move(missing.parts), .window = request.window});
}

Result<Fetched> fetch(UpdateSource& source, model::Window window, const std::stop_token& stop) {
  Fetched result;
  result.update.cluster = source.cluster;
  result.update.window = window;
  auto units = source.manager->fetch_units(window, stop);
  if (!units) {
    return fail(std::move(units).error().with_context("fetching units"));
  }
  result.update.units = std::move(*units);
  drop_repeated(result.update.units);
  auto people = source.manager->fetch_users_projects(window, stop);
  if (people) {
    result.update.users = std::move(people->users);
    result.update.projects = std::move(people->projects);
  } else {
    result.people_cause = std::move(people).error();
  }
  if (auto leads = source.manager->fetch_leads(stop)) {
    result.update.leads = std::move(*leads);
  } else if (!result.people_cause) {
    result.people_cause = std::move(leads).error().with_context("fetching project leads");
  }
  const UpdateRequest request{.window = window, .parts = {}, .accept_incomplete = false};
  for (auto& named : source.updaters) {
    run_updater(named, request, result, stop);
  }
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "stopped");
  }
  return result;
}

Result<store::GapFill> fill(UpdateSource& source,
                            const store::Gap& gap,
                            std::vector<model::Unit> units,
                            bool accept_incomplete,
                            const std::stop_token& stop) {
  store::GapFill result{
      .cluster = source.cluster, .gap_id = gap.id, .units = {}, .times = {}, .still_missing = {}};
  const auto found =
      std::ranges::find(source.updaters, gap.updater, &UpdateSource::NamedUpdater::id);
  if (found == source.updaters.end()) {
    return result;
  }
  std::set<std::string> times;
  for (const auto& unit : units) {
    for (const auto& [name, value] : unit.total_time_seconds) {
      times.insert(name);
    }
  }
  const bool everything = holds(gap.parts, kEverything);
  auto missing =
      found->updater->update({.window = gap.window,
                              .parts = everything ? std::vector<std::string>{} : gap.parts,
                              .accept_incomplete = accept_incomplete},
                             units, stop);
  if (!missing) {
    return fail(std::move(missing).error());
  }
  if (missing->parts == gap.parts) {
    return fail(std::move(missing->cause));
  }
  for (auto later = std::next(found); later != source.updaters.end(); ++later) {
    clear_metrics(units, [&](model::Metric metric) { return later->updater->gives(metric); });
  }
  std::set<std::string> added;
  for (const auto& unit : units) {
    for (const auto& [name, value] : unit.total_time_seconds) {
      if (!times.contains(name)) {
        added.insert(name);
      }
    }
  }
  result.units = std::move(units);
  result.times.assign(added.begin(), added.end());
  result.still_missing = std::move(missing->parts);
  return result;
}

/// The last resort of a thread.
template <typename Call>
auto guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& exception) {
    return fail(ErrorCode::kInternal, "unexpected: {}", exception.what());
  } catch (...) {
    return fail(ErrorCode::kInternal, "unexpected exception");
  }
}

}  // namespace

std::optional<DueWindow> due_window(const UpdateSource& source,
                                    const WindowRules& rules,
                                    std::int64_t start_ms,
                                    std::int64_t now_ms) {
  milliseconds settle = source.manager->settle();
  milliseconds shortest_window{0};
  for (const auto& named : source.updaters) {
    settle = std::max(settle, named.updater->settle());
    shortest_window = std::max(shortest_window, named.updater->shortest_window());
  }
  const std::int64_t shortest =
      std::min((shortest_window.count() + kSecond - 1) / kSecond * kSecond, rules.longest_ms);
  const std::int64_t due = (now_ms - settle.count()) / kSecond * kSecond;
  if (due <= start_ms) {
    return std::nullopt;
  }
  // Windows end at midnight, so that a day's usage is that day's.
  const std::int64_t midnight = next_midnight(start_ms, rules.zone);
  const std::int64_t limit = std::min(start_ms + rules.longest_ms, midnight);
  std::int64_t end = std::min(due, limit);
  if (end < midnight && midnight - end < shortest) {
    if (midnight - shortest - start_ms >= shortest) {
      end = midnight - shortest;
    } else if (limit == midnight) {
      return std::nullopt;
    }
  }
  if (end - start_ms < shortest && end < limit) {
    return std::nullopt;
  }
  return DueWindow{.window = {.start_ms = start_ms, .end_ms = end}, .last = end == due};
}

Result<Fetched> fetch_window(UpdateSource& source,
                             model::Window window,
                             const std::stop_token& stop) {
  return guarded([&] { return fetch(source, window, stop); });
}

Result<store::GapFill> fetch_gap(UpdateSource& source,
                                 const store::Gap& gap,
                                 std::vector<model::Unit> units,
                                 bool accept_incomplete,
                                 const std::stop_token& stop) {
  return guarded([&] { return fill(source, gap, std::move(units), accept_incomplete, stop); });
}

void release_windows(UpdateSource& source, std::int64_t complete_ms, const std::stop_token& stop) {
  const Result<> done = guarded([&]() -> Result<> {
    for (auto& named : source.updaters) {
      named.updater->release(complete_ms, stop);
    }
    return {};
  });
  if (!done) {
    log::error("an updater cannot let go of windows",
               {{"cluster_id", source.cluster.id}, {"err", done.error().message}});
  }
}

}  // namespace ceems::ingest
