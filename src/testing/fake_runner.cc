#include "testing/fake_runner.h"

#include <utility>

#include "base/mutex.h"
#include "base/strings.h"

namespace ceems::testing {
namespace {

std::string_view program_of(const os::Command& command) {
  const std::string_view path = command.path;
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

void FakeRunner::answer(std::string_view program, Answer answer) {
  const MutexLock lock(mutex_);
  answers_.insert_or_assign(std::string(program), std::move(answer));
}

void FakeRunner::reply(std::string_view program, os::CommandResult result) {
  answer(program, [result = std::move(result)](const os::Command&) { return result; });
}

void FakeRunner::refuse(std::string_view program, Error error) {
  answer(program, [error = std::move(error)](const os::Command& command) {
    return Result<os::CommandResult>(fail(Error(error).with_context("run " + command.path)));
  });
}

std::vector<os::Command> FakeRunner::calls() const {
  const MutexLock lock(mutex_);
  return calls_;
}

Result<os::CommandResult> FakeRunner::ask(const os::Command& command, const std::stop_token& stop) {
  Answer chosen;
  {
    const MutexLock lock(mutex_);
    calls_.push_back(command);
    if (const auto found = answers_.find(program_of(command)); found != answers_.end()) {
      chosen = found->second;
    }
  }
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "run {}: stopped", command.path);
  }
  if (!chosen) {
    return fail(ErrorCode::kNotFound, "run {}: No such file or directory", command.path);
  }
  return chosen(command);
}

Result<os::CommandResult> FakeRunner::run(const os::Command& command, std::stop_token stop) {
  auto result = ask(command, stop);
  if (result && result->output.size() > command.max_output_bytes) {
    return fail(ErrorCode::kUnavailable, "run {}: output exceeds {} bytes", command.path,
                command.max_output_bytes);
  }
  return result;
}

Result<os::CommandResult> FakeRunner::run_lines(
    const os::Command& command,
    const std::function<Result<>(std::string_view)>& line,
    std::stop_token stop) {
  CEEMS_TRY(result, ask(command, stop));
  const std::string output = std::exchange(result.output, {});
  std::string_view rest = output;
  while (!rest.empty()) {
    const std::string_view text = take_until(rest, '\n');
    if (text.size() > command.max_output_bytes && !command.cut_lines) {
      return fail(ErrorCode::kUnavailable, "run {}: a line of output exceeds {} bytes",
                  command.path, command.max_output_bytes);
    }
    CEEMS_TRY_IN("run " + command.path, line(text.substr(0, command.max_output_bytes)));
  }
  return result;
}

}  // namespace ceems::testing
