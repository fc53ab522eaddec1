#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/update_source.h"
#include "store/store.h"

namespace ceems::ingest {

/// What limits windows.
struct WindowRules {
  std::int64_t longest_ms = 0;
  TimeZone zone;  ///< of the midnights at which windows are cut
};

struct DueWindow {
  model::Window window;
  bool last = false;  ///< reaches the end of what is due
};

/// The window that begins at `start_ms` and is due at `now_ms`, or nothing yet.
///
/// It ends `settle` before now at a whole second, and no later than `longest_ms` after its start or
/// at midnight. It is no shorter than the updaters' shortest_window(), nor leaves a shorter one
/// before midnight, as far as the start permits: then it waits.
std::optional<DueWindow> due_window(const UpdateSource& source,
                                    const WindowRules& rules,
                                    std::int64_t start_ms,
                                    std::int64_t now_ms);

/// One window of one cluster.
struct Fetched {
  store::ClusterUpdate update;  ///< with the gaps, should it be written like this
  /// Why metrics are missing; nothing when none are.
  std::optional<Error> cause;
  bool lasting = false;                    ///< asking again soon is of no use
  std::optional<Error> people_cause = {};  ///< why users, projects or leads are missing
};

/// Fetches units, users, projects and leads and adds the metrics. An error when there are no units;
/// users, projects and leads may be missing, metrics as the gaps say. Exceptions become errors.
Result<Fetched> fetch_window(UpdateSource& source,
                             model::Window window,
                             const std::stop_token& stop);

/// Finds out what is missing in a gap. `units` as the store gave them. Parts that are no longer
/// configured are found at once, empty. kUnavailable when nothing new is known.
Result<store::GapFill> fetch_gap(UpdateSource& source,
                                 const store::Gap& gap,
                                 std::vector<model::Unit> units,
                                 bool accept_incomplete,
                                 const std::stop_token& stop);

/// Tells the updaters that every window up to `complete_ms` is written with all its metrics.
void release_windows(UpdateSource& source, std::int64_t complete_ms, const std::stop_token& stop);

}  // namespace ceems::ingest
