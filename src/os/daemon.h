#pragma once

#include <functional>
#include <string_view>

#include "base/error.h"

namespace ceems::os {

// The frame of our daemons: main() is daemon_main(); its `run` reads flags and configuration, sets
// up the log, opens what needs privileges, and ends in serve_until_stopped().

/// Blocks the signals of serve_until_stopped() and calls `run`; an exception is one line and exit
/// status 1.
int daemon_main(std::string_view name,
                int argc,
                char** argv,
                int (*run)(int argc, const char* const* argv));

/// Exit status 1 for what goes wrong before the log is set up: one plain line with the local time.
int give_up_early(const Error& error);
/// The same afterwards: a line of the log.
int give_up(const Error& error);

/// Allows all the open files that the hard limit does. The soft limit is low for programs that call
/// select(2) only.
void raise_file_limit();

/// "starting NAME" and which version.
void log_start(std::string_view name);

/// Tells systemd that the daemon is ready, and waits for SIGINT or SIGTERM, which it logs;
/// `on_hangup` is called for each SIGHUP before.
void serve_until_stopped(const std::function<void()>& on_hangup);

}  // namespace ceems::os
