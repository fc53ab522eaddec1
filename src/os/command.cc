#include "os/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "base/fd.h"
#include "base/strings.h"
#include "os/child.h"

namespace ceems::os {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMaxErrorText = std::size_t{64} << 10U;
constexpr std::chrono::milliseconds kEndPoll{20};  // for kernels without pidfd

/// Collects stdout as a whole or hands it over line by line.
class Output {
 public:
  Output(const Command& command, const std::function<Result<>(std::string_view)>* line)
      : limit_(command.max_output_bytes), cut_lines_(command.cut_lines), line_(line) {}

  Result<> add(std::string_view data) {
    if (line_ == nullptr) {
      if (text_.size() + data.size() > limit_) {
        return fail(ErrorCode::kUnavailable, "output exceeds {} bytes", limit_);
      }
      text_.append(data);
      return {};
    }
    while (!data.empty()) {
      const std::size_t end = data.find('\n');
      const std::size_t room = limit_ - text_.size();
      if (std::min(end, data.size()) > room && !cut_lines_) {
        return fail(ErrorCode::kUnavailable, "a line of output exceeds {} bytes", limit_);
      }
      text_.append(data.substr(0, std::min(end, room)));
      if (end == std::string_view::npos) {
        return {};
      }
      data.remove_prefix(end + 1);
      Result<> done = (*line_)(text_);
      text_.clear();
      if (!done) {
        return done;
      }
    }
    return {};
  }

  /// Hands over a last line that has no line end.
  Result<> finish() {
    if (line_ == nullptr || text_.empty()) {
      return {};
    }
    Result<> done = (*line_)(text_);
    text_.clear();
    return done;
  }

  std::string take() { return std::move(text_); }

 private:
  std::size_t limit_;
  bool cut_lines_;
  const std::function<Result<>(std::string_view)>* line_;
  std::string text_;
};

/// Reads once without blocking. Empty if there is nothing to read; closes the descriptor at its
/// end.
std::string_view read_some(UniqueFd& fd, std::span<char> buffer) {
  ssize_t count = 0;
  do {
    count = ::read(fd.get(), buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    return {buffer.data(), static_cast<std::size_t>(count)};
  }
  if (count == 0 || errno != EAGAIN) {
    fd.reset();
  }
  return {};
}

/// One run of one command.
class Execution {
 public:
  Execution(const Command& command,
            const std::function<Result<>(std::string_view)>* line,
            const std::stop_token& stop)
      : command_(command),
        stop_(stop),
        deadline_(SteadyClock::now() + command.timeout),
        output_(command, line) {}

  Result<CommandResult> run() {
    auto out = make_pipe();
    auto err = make_pipe();
    if (!out || !err) {
      return fail(std::move(!out ? out : err).error());
    }
    const UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    CEEMS_TRY(child, Child::start(command_, out->write.get(), err->write.get(), deadline_));
    out_ = std::move(out->read);
    err_ = std::move(err->read);
    out->write.reset();
    err->write.reset();
    ::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(err_.get(), F_SETFL, O_NONBLOCK);
    const std::stop_callback on_stop(stop_, [&wake] {
      const std::uint64_t one = 1;
      static_cast<void>(!::write(wake.get(), &one, sizeof(one)));
    });

    CEEMS_TRY_IN("run " + printable(command_.path), result, follow(child, wake.get()));
    return result;
  }

 private:
  Result<CommandResult> follow(Child& child, int wake) {
    while (!child.ended()) {
      CEEMS_TRY(wait(wake, child.pidfd()));
    }
    // Processes of the group may have held the pipes open. They are dead now, so drain the pipes.
    const auto status = child.finish();
    CEEMS_TRY(drain());
    CEEMS_TRY(output_.finish());
    return CommandResult{
        .exit_status = status.value_or(255), .output = output_.take(), .error_text = error_text_};
  }

  /// The time to the deadline; an error once it has passed or a stop was requested.
  [[nodiscard]] Result<std::chrono::milliseconds> left() const {
    if (stop_.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
    if (left.count() <= 0) {
      return fail(ErrorCode::kTimeout, "still running after {} ms", command_.timeout.count());
    }
    return left;
  }

  /// Waits for output, the end of the process, a stop or the deadline, and reads the output.
  Result<> wait(int wake, int pidfd) {
    CEEMS_TRY(time, left());
    std::array<pollfd, 4> fds{{{.fd = wake, .events = POLLIN, .revents = 0},
                               {.fd = pidfd, .events = POLLIN, .revents = 0},
                               {.fd = out_.get(), .events = POLLIN, .revents = 0},
                               {.fd = err_.get(), .events = POLLIN, .revents = 0}}};
    const auto max_wait = pidfd >= 0 ? std::chrono::milliseconds(60'000) : kEndPoll;
    ::poll(fds.data(), fds.size(), static_cast<int>(std::min(time, max_wait).count()));
    if (fds[2].revents != 0) {
      CEEMS_TRY(output_.add(read_some(out_, buffer_)));
    }
    if (fds[3].revents != 0) {
      add_error_text(read_some(err_, buffer_));
    }
    return {};
  }

  /// Reads the rest of the pipes.
  Result<> drain() {
    std::string_view data;
    while (out_.valid() && !(data = read_some(out_, buffer_)).empty()) {
      CEEMS_TRY(output_.add(data));
      // A process that left the group can fill the pipe as fast as we empty it.
      CEEMS_TRY(left());
    }
    while (err_.valid() && error_text_.size() < kMaxErrorText &&
           !(data = read_some(err_, buffer_)).empty()) {
      add_error_text(data);
    }
    return {};
  }

  void add_error_text(std::string_view data) {
    error_text_.append(data.substr(0, kMaxErrorText - error_text_.size()));
  }

  const Command& command_;
  const std::stop_token& stop_;
  SteadyClock::time_point deadline_;
  Output output_;
  std::string error_text_;
  UniqueFd out_;
  UniqueFd err_;
  std::vector<char> buffer_ = std::vector<char>(65536);
};

class RealRunner final : public CommandRunner {
 public:
  Result<CommandResult> run(const Command& command, std::stop_token stop) override {
    return execute(command, nullptr, stop);
  }
  Result<CommandResult> run_lines(const Command& command,
                                  const std::function<Result<>(std::string_view)>& line,
                                  std::stop_token stop) override {
    return execute(command, &line, stop);
  }

 private:
  static Result<CommandResult> execute(const Command& command,
                                       const std::function<Result<>(std::string_view)>* line,
                                       const std::stop_token& stop) {
    if (!command.as_root || !command.only_trusted) {
      return Execution(command, line, stop).run();
    }
    CEEMS_TRY(path, trusted_program(command.path));
    Command trusted = command;
    trusted.path = std::move(path);
    return Execution(trusted, line, stop).run();
  }
};

}  // namespace

CommandRunner& real_runner() {
  static RealRunner runner;
  return runner;
}

Result<std::string> trusted_program(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) {
    return fail(errno_error(error.value(), printable(path)));
  }
  for (std::filesystem::path at = real;; at = at.parent_path()) {
    struct stat info{};
    if (::stat(at.c_str(), &info) != 0) {
      return fail(errno_error(errno, printable(at.string())));
    }
    const bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
    if (info.st_uid != 0 || ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky)) {
      return fail(ErrorCode::kPermissionDenied,
                  "{} is not run as root: {} must belong to root and be writable by root alone",
                  printable(path), at == real ? "it" : printable(at.string()));
    }
    if (at == at.root_path()) {
      return real.string();
    }
  }
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

Result<std::string> find_program(std::string_view name, std::string_view search_path) {
  if (name.find('/') != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected a name without a directory",
                printable(name));
  }
  for (const std::string_view directory : split(search_path, ':')) {
    if (!directory.starts_with('/')) {
      continue;  // an empty or relative entry would be the current directory
    }
    std::string path = std::string(directory) + "/" + std::string(name);
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return fail(ErrorCode::kNotFound, "program {} not found in {}", printable(name),
              printable(search_path));
}

}  // namespace ceems::os
