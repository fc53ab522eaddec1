#include "ingest/update_window.h"

#include <algorithm>
#include <chrono>

#include "base/time/time_text.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kSecond = 1000;

/// Returns the first midnight after a moment. Days have 23 to 25 hours, so 36 hours after a day's
/// start is always within the next day.
std::int64_t next_midnight(std::int64_t epoch_ms, const TimeZone& zone) {
  constexpr std::int64_t kHour = 3'600'000;
  return zone.day_start(zone.day_start(epoch_ms) + 36 * kHour);
}

}  // namespace

Result<std::int64_t> parse_update_from(std::string_view text,
                                       std::string_view time_zone,
                                       Clock::SystemTime now) {
  CEEMS_TRY(zone, TimeZone::find(time_zone));
  if (text.empty() || text == "today") {
    return zone.day_start(std::chrono::duration_cast<milliseconds>(now.time_since_epoch()).count());
  }
  const auto local = complete_local(text);
  const auto ms = local ? zone.parse_local(*local) : std::nullopt;
  if (!ms) {
    return fail(ErrorCode::kInvalidArgument, "failed to parse time string: {}", text);
  }
  return *ms;
}

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
  // Windows end at midnight, so that usage counts on the day it occurred.
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

}  // namespace ceems::ingest
