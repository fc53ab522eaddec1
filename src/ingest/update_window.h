#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/update_source.h"
#include "model/unit.h"

namespace ceems::ingest {

/// Returns `update_from` in epoch milliseconds: "" or "today" (00:00 of today in the zone),
/// YYYY-MM-DD, YYYY-MM-DDTHH:MM or YYYY-MM-DDTHH:MM:SS. kInvalidArgument "failed to parse time
/// string: x" for anything else.
Result<std::int64_t> parse_update_from(std::string_view text,
                                       std::string_view time_zone,
                                       Clock::SystemTime now);

/// The limits of windows.
struct WindowRules {
  std::int64_t longest_ms = 0;
  TimeZone zone;  ///< in which windows end at midnight
};

struct DueWindow {
  model::Window window;
  bool last = false;  ///< no further window is due at the moment
};

/// Returns the window that begins at `start_ms` and is due at `now_ms`, or nothing if none is due
/// yet.
///
/// It ends at a whole second, at least settle() ago (the longest of manager and updaters), at most
/// `longest_ms` after its start, and at the next midnight at the latest. If its start permits, both
/// the window and the rest of the day after it are at least as long as the updaters'
/// shortest_window(). A window that is still too short is not due.
std::optional<DueWindow> due_window(const UpdateSource& source,
                                    const WindowRules& rules,
                                    std::int64_t start_ms,
                                    std::int64_t now_ms);

}  // namespace ceems::ingest
