#pragma once

#include <string_view>

#include "base/result.h"

namespace ceems::os {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE in the calling thread and those it starts later. Call
/// first in main.
void block_signals();

/// Waits for SIGINT, SIGTERM or SIGHUP and gives its number. After SIGINT or SIGTERM the default
/// actions are back, so a second signal ends the program at once.
int wait_for_signal();

/// Tells systemd (sd_notify protocol over $NOTIFY_SOCKET), e.g. "READY=1"; no-op without it.
void notify_systemd(std::string_view state);

}  // namespace ceems::os
