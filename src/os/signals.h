#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace ceems::os {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE in the calling thread and in those it starts later.
/// Call it first in main.
void block_signals();

/// Waits for SIGINT, SIGTERM or SIGHUP and returns its number. After SIGINT or SIGTERM the default
/// actions are restored, so a second signal ends the program at once.
int wait_for_signal();
/// The same, but waits for `most` at the longest: then there is no number.
std::optional<int> wait_for_signal(std::chrono::milliseconds most);

/// Sends systemd a state such as "READY=1" (sd_notify protocol over $NOTIFY_SOCKET). Does nothing
/// without the variable.
void notify_systemd(std::string_view state);

/// The time in which systemd expects "WATCHDOG=1" (WatchdogSec=, sd_watchdog_enabled(3)). Nothing
/// if it expects none of this process.
std::optional<std::chrono::microseconds> watchdog_limit();

}  // namespace ceems::os
