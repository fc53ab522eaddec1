#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::run {

/// The signals that a run passes on to its command. They are blocked, so that they are waited for.
sigset_t passed_signals();

/// Blocks passed_signals() and SIGCHLD in this thread, and makes this process the parent of
/// orphaned descendants (PR_SET_CHILD_SUBREAPER).
void prepare_signals();

/// Starts a command with this process's files, directory, environment and process group, and with
/// the signals that this process had from its caller. What cannot be executed ends with 127 or 126,
/// as in a shell, after a line on stderr. Only fork() itself can fail.
Result<pid_t> start_command(const std::vector<std::string>& words);

/// Becomes the command; see start_command().
[[noreturn]] void become_command(const std::vector<std::string>& words);

/// Starts a helper in a process group of its own, without input, with stdout and stderr to
/// `output`.
Result<pid_t> start_helper(const std::vector<std::string>& words, int output);

/// The exit status of a shell for a wait status: that of the process, or 128 + signal.
int exit_status_of(int wait_status);

}  // namespace ceems::exporter::run
