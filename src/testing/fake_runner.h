#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "os/command.h"

namespace ceems::testing {

/// A command runner that starts no processes. Tests set what each program returns, and inspect the
/// commands. A program without an answer does not exist. Safe for concurrent use.
class FakeRunner final : public os::CommandRunner {
 public:
  using Answer = std::function<Result<os::CommandResult>(const os::Command&)>;

  /// `program` is the last part of the command's path, e.g. "sacct". A later answer replaces an
  /// earlier one.
  void answer(std::string_view program, Answer answer);
  /// Returns the same result each time.
  void reply(std::string_view program, os::CommandResult result);
  /// Fails each time. The error starts with "run PATH: ", like errors of the real runner.
  void refuse(std::string_view program, Error error);

  /// All commands so far, in order.
  [[nodiscard]] std::vector<os::Command> calls() const;

  Result<os::CommandResult> run(const os::Command& command, std::stop_token stop = {}) override;
  Result<os::CommandResult> run_lines(const os::Command& command,
                                      const std::function<Result<>(std::string_view)>& line,
                                      std::stop_token stop = {}) override;

 private:
  Result<os::CommandResult> ask(const os::Command& command, const std::stop_token& stop);

  mutable Mutex mutex_;
  std::map<std::string, Answer, std::less<>> answers_ CEEMS_GUARDED_BY(mutex_);
  std::vector<os::Command> calls_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::testing
