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

/// What limits windows.
struct WindowRules {
  std::int64_t longest_ms = 0;
  TimeZone zone;  ///< of the midnights at which windows end
};

struct DueWindow {
  model::Window window;
  bool last = false;  ///< reaches the end of what is due
};

/// The window that begins at `start_ms` and is due at `now_ms`, or nothing yet.
///
/// It ends `settle` (the longest of manager and updaters) before now at a whole second, and no
/// later than `longest_ms` after its start or at midnight. It is no shorter than the updaters'
/// shortest_window(), nor leaves a shorter one before midnight, as far as the start permits;
/// otherwise it is not due yet.
std::optional<DueWindow> due_window(const UpdateSource& source,
                                    const WindowRules& rules,
                                    std::int64_t start_ms,
                                    std::int64_t now_ms);

}  // namespace ceems::ingest
