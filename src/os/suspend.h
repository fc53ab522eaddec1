#pragma once

#include <chrono>

namespace ceems::os {

/// The time since boot for which the machine was suspended, which the monotonic clock does not
/// count. Two values differ by the time between the readings of two clocks, usually microseconds,
/// even if nothing was suspended. Safe for concurrent use.
std::chrono::nanoseconds suspended_time();

}  // namespace ceems::os
