#pragma once

#include <cstdint>

namespace ceems {

// Lengths of time, and the energy of an hour, in the units of databases and requests.

inline constexpr std::int64_t kSecondMs = 1000;
inline constexpr std::int64_t kMinuteMs = 60 * kSecondMs;
inline constexpr std::int64_t kHourMs = 60 * kMinuteMs;
/// A day has 23 to 25 hours where clocks are changed: see TimeZone::day_start().
inline constexpr std::int64_t kDayMs = 24 * kHourMs;
inline constexpr double kHourSeconds = 3600;
inline constexpr double kJoulesPerKwh = 1000 * kHourSeconds;

}  // namespace ceems
