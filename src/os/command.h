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
  /// The complete environment of the child; nothing is inherited, not even PATH.
  std::map<std::string, std::string> environment;
  std::chrono::milliseconds timeout{5000};
  std::size_t max_output_bytes = 16U << 20U;  ///< more stdout is an error: kUnavailable
  bool cut_lines = false;  ///< of run_lines(): cut longer lines there instead, and go on
  bool as_root =
      false;  ///< raise CAP_SETUID and CAP_SETGID around the start and run as uid 0, gid 0
  bool only_trusted = false;  ///< with as_root: run only what trusted_program() accepts
};

struct CommandResult {
  int exit_status = 0;          ///< or 128 + signal
  std::string output = {};      ///< stdout
  std::string error_text = {};  ///< stderr, cut at 64 KiB
};

/// Runs commands. Implementations are safe for concurrent use. A child gets its own process group,
/// no inherited descriptors and stdin from /dev/null. At the deadline its whole group is killed.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  /// Returns the complete output. A non-zero exit status is not an error here. Errors:
  /// kInvalidArgument (relative path, NUL byte), kNotFound, kPermissionDenied, kTimeout,
  /// kUnavailable (too much output, stopped). Processes that the command leaves in its group are
  /// killed when it ends.
  virtual Result<CommandResult> run(const Command& command, std::stop_token stop = {}) = 0;
  /// The same, but passes each line of stdout to `line` as it arrives, without its line end. The
  /// output in the result is empty, and max_output_bytes limits each line. An error from `line`
  /// stops the command.
  virtual Result<CommandResult> run_lines(const Command& command,
                                          const std::function<Result<>(std::string_view)>& line,
                                          std::stop_token stop = {}) = 0;
};

/// Runs real processes. Lives as long as the program.
CommandRunner& real_runner();

/// Checks that only root can change a program, so that it is safe to run as root: the file and each
/// directory above it must belong to root and be writable by root alone, except that sticky
/// directories such as /tmp may be writable by all. Returns the path with symbolic links resolved,
/// kPermissionDenied, or the error of a file that cannot be examined.
Result<std::string> trusted_program(const std::string& path);

/// The variables of this process. Must not run while another thread changes them.
std::map<std::string, std::string> process_environment();

/// The absolute path of the first executable `name` in the directories of `search_path`
/// (":"-separated), or kNotFound.
Result<std::string> find_program(std::string_view name, std::string_view search_path);

}  // namespace ceems::os
