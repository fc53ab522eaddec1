#include "ingest/update_fetch.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "store/schema/tables.h"
#include "tsdb/client.h"

namespace ceems::ingest {
namespace {

constexpr std::string_view kEverything = "*";

/// Removes all but the last record of a unit that a manager returned several times, because it
/// would count several times. The last record is the newest.
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

/// `rows`: units, users or projects.
template <typename Row>
void set_cluster(const model::Cluster& cluster, std::vector<Row>& rows) {
  for (Row& row : rows) {
    row.cluster_id = cluster.id;
    row.resource_manager = cluster.manager;
  }
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

/// Adds the metrics of one updater and records what is missing.
void run_updater(UpdateSource::NamedUpdater& named,
                 const UpdateRequest& request,
                 FetchedWindow& result,
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
  // These metrics replace the values of earlier updaters. They are added when the gap is filled, so
  // the earlier ones must be removed now.
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

Result<FetchedWindow> fetch_window(UpdateSource& source,
                                   model::Window window,
                                   std::optional<model::AccountNames> names,
                                   const std::stop_token& stop) {
  FetchedWindow result;
  result.update.cluster = source.cluster;
  result.update.window = window;
  source.manager->restore_names(std::move(names));
  CEEMS_TRY_IN("fetching units", units, source.manager->fetch_units(window, stop));
  result.update.units = std::move(units);
  drop_repeated(result.update.units);
  set_cluster(source.cluster, result.update.units);
  auto people = source.manager->fetch_users_projects(window, stop);
  if (people) {
    set_cluster(source.cluster, people->users);
    set_cluster(source.cluster, people->projects);
    result.update.users = std::move(people->users);
    result.update.projects = std::move(people->projects);
    result.update.members_of_usage = source.manager->members_are_of_jobs();
  } else {
    result.people_cause = std::move(people).error();
  }
  if (auto leads = source.manager->fetch_leads(stop)) {
    result.update.leads = std::move(*leads);
  } else if (!result.people_cause) {
    result.people_cause = std::move(leads).error().with_context("fetching project leads");
  }
  result.update.names = source.manager->new_names();
  result.update.flavors = source.manager->flavors();
  const UpdateRequest request{.window = window, .parts = {}, .accept_incomplete = false};
  for (auto& named : source.updaters) {
    run_updater(named, request, result, stop);
  }
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "stopped");
  }
  return result;
}

Result<store::GapFill> fetch_gap(UpdateSource& source,
                                 GapRequest request,
                                 const std::stop_token& stop) {
  const store::Gap& gap = request.gap;
  std::vector<model::Unit>& units = request.units;
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
  CEEMS_TRY(missing,
            found->updater->update({.window = gap.window,
                                    .parts = everything ? std::vector<std::string>{} : gap.parts,
                                    .accept_incomplete = request.accept_incomplete},
                                   units, stop));
  if (missing.parts == gap.parts) {
    return fail(std::move(missing.cause));
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
  result.still_missing = std::move(missing.parts);
  return result;
}

/// Turns an exception into an error, so that it ends neither the thread nor the program.
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

void release_windows(UpdateSource& source, std::int64_t complete_ms) {
  const Result<> done = guarded([&]() -> Result<> {
    for (auto& named : source.updaters) {
      named.updater->release(complete_ms);
    }
    return {};
  });
  if (!done) {
    log::error("an updater cannot release windows",
               {{"cluster_id", source.cluster.id}, {"err", done.error().message}});
  }
}

WindowAnswer answer_window(UpdateSource& source,
                           const WindowRules& rules,
                           const Clock& clock,
                           WindowRequest request,
                           const std::stop_token& stop) {
  WindowAnswer answer{.fetch = request.fetch};
  release_windows(source, request.complete_ms);
  if (request.fetch) {
    answer.due = due_window(source, rules, request.start_ms, request.now_ms);
  }
  if (answer.due) {
    const auto begin = clock.steady_now();
    answer.fetched = guarded(
        [&] { return fetch_window(source, answer.due->window, std::move(request.names), stop); });
    answer.seconds = std::chrono::duration<double>(clock.steady_now() - begin).count();
  }
  return answer;
}

}  // namespace

FetchAnswer fetch(UpdateSource& source,
                  const WindowRules& rules,
                  const Clock& clock,
                  FetchRequest request,
                  const std::stop_token& stop) {
  const tsdb::CancelScope scope(stop);  // also for settings, which several places ask for
  if (auto* window = std::get_if<WindowRequest>(&request)) {
    return answer_window(source, rules, clock, std::move(*window), stop);
  }
  auto& gap = std::get<GapRequest>(request);
  const store::Gap which = gap.gap;
  return GapAnswer{.gap = which,
                   .fill = guarded([&] { return fetch_gap(source, std::move(gap), stop); })};
}

}  // namespace ceems::ingest
