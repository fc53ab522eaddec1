#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::os {

/// A program to run, without a shell.
struct Command {
  std::string path;  ///< absolute
  std::vector<std::string> arguments;
  /// The child's whole environment; add PATH and such yourself.
  std::map<std::string, std::string> environment;
  std::chrono::milliseconds timeout{5000};
  std::size_t max_output_bytes = 16U << 20U;  ///< more than this on stdout kills it: kUnavailable
  bool as_root =
      false;  ///< raise CAP_SETUID and CAP_SETGID around the start and run as uid 0, gid 0
  bool only_trusted = false;  ///< with as_root: runs what trusted_program() gives
};

struct CommandResult {
  int exit_status = 0;          ///< or 128 + signal
  std::string output = {};      ///< stdout
  std::string error_text = {};  ///< stderr, cut at 64 KiB
};

/// Runs commands. Implementations are safe for concurrent use. Children get their own process
/// group, no inherited descriptors, stdin from /dev/null, and are killed as a group at the
/// deadline.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  /// The whole output. A non-zero exit is no error here. Errors: kInvalidArgument (relative path,
  /// NUL byte), kNotFound, kPermissionDenied, kTimeout, kUnavailable (too much output, stopped).
  /// Processes the command leaves behind in its group are killed when it ends.
  virtual Result<CommandResult> run(const Command& command, std::stop_token stop = {}) = 0;
  /// The same, each line of stdout (without its end) handed over as it comes; output in the result
  /// is empty and max_output_bytes bounds one line. The callback returns an error to stop the
  /// command.
  virtual Result<CommandResult> run_lines(const Command& command,
                                          const std::function<Result<>(std::string_view)>& line,
                                          std::stop_token stop = {}) = 0;
};

/// Runs real processes. Lives as long as the program.
CommandRunner& real_runner();

/// The path, links followed, of a program that root may run, as nobody else can change it: it has
/// to belong to root and be writable by root alone; so has each directory above it, but for sticky
/// ones such as /tmp. kPermissionDenied, or the error of looking at the path.
Result<std::string> trusted_program(const std::string& path);

/// First executable `name` in the directories of `search_path` (":"-separated), as an absolute
/// path; or kNotFound.
Result<std::string> find_program(std::string_view name, std::string_view search_path);

}  // namespace ceems::os
