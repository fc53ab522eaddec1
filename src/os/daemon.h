#pragma once

#include <functional>
#include <string_view>

#include "base/error.h"

namespace ceems::os {

// The frame of our daemons. main() calls daemon_main(). Its `run` reads flags and configuration,
// sets up the log, opens what needs privileges, and ends in serve_until_stopped().

/// Blocks the signals that serve_until_stopped() waits for and calls `run`. An exception is printed
/// in one line and ends the program with status 1.
int daemon_main(std::string_view name,
                int argc,
                char** argv,
                int (*run)(int argc, const char* const* argv));

/// Prints an error that occurs before the log is set up, as one plain line with the time in UTC.
/// Returns exit status 1.
int give_up_early(const Error& error);
/// The same after the log is set up: the error is a log line.
int give_up(const Error& error);

/// Raises the soft limit of open files to the hard limit. The soft limit is low only for the sake
/// of programs that call select(2).
void raise_file_limit();

/// Logs "starting NAME" with version, hostname and the limit of open files.
void log_start(std::string_view name);

/// Notifies systemd that the daemon is ready, and waits for SIGINT or SIGTERM, which it logs.
/// `on_hangup` is called for each SIGHUP until then. If systemd watches the daemon (WatchdogSec=),
/// `works` is called three times in that time, and the watchdog is notified as long as it returns
/// true. `works` may be empty, and must return well within a third of that time.
void serve_until_stopped(const std::function<void()>& on_hangup,
                         const std::function<bool()>& works = {});

}  // namespace ceems::os
