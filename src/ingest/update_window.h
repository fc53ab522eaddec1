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

/// Epoch milliseconds of `update_from`: "" or "today" (00:00 of today in the zone), YYYY-MM-DD,
/// YYYY-MM-DDTHH:MM or YYYY-MM-DDTHH:MM:SS. Else kInvalidArgument "failed to parse time string: x".
Result<std::int64_t> parse_update_from(std::string_view text,
                                       std::string_view time_zone,
                                       Clock::SystemTime now);

/// The limits of windows.
struct WindowRules {
  std::int64_t longest_ms = 0;
  TimeZone zone;  ///< of the midnights at which windows end
};

struct DueWindow {
  model::Window window;
  bool last = false;  ///< no further window is due at the moment
};

/// The window that begins at `start_ms` and is due at `now_ms`; nothing if none is due yet.
///
/// It ends at a whole second, at least settle() before now (the longest of manager and updaters),
/// at most `longest_ms` after its start, and at the next midnight at the latest. If its start
/// permits, it is at least as long as the updaters' shortest_window() and so is the rest of the
/// day; a window that is still too short is not due.
std::optional<DueWindow> due_window(const UpdateSource& source,
                                    const WindowRules& rules,
                                    std::int64_t start_ms,
                                    std::int64_t now_ms);

}  // namespace ceems::ingest
