#include "os/command.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/strings.h"
#include "os/privileges.h"

namespace ceems::os {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMaxErrorText = std::size_t{64} << 10U;
constexpr std::chrono::milliseconds kReapPoll{20};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(errno_error(errno, "make a pipe"));
  }
  return Pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
}

/// NULL-terminated array for exec; points into `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    out.push_back(text.data());
  }
  out.push_back(nullptr);
  return out;
}

/// What the child needs, all of it made before fork(): afterwards only async-signal-safe calls
/// happen.
struct Launch {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int output;
  int errors;
  int report;
  bool as_root;
};

[[noreturn]] void child(const Launch& launch) {
  const auto give_up = [&] {
    const int error = errno;
    static_cast<void>(!::write(launch.report, &error, sizeof(error)));
    ::_exit(127);
  };
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0 || ::dup2(input, 0) < 0 || ::dup2(launch.output, 1) < 0 ||
      ::dup2(launch.errors, 2) < 0) {
    give_up();
  }
  // Everything else the program holds open stays here; CLOEXEC keeps `report` until exec succeeds.
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  if (launch.as_root &&
      // Raw system calls: glibc's wrappers would signal the other threads of the program.
      (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, 0, 0, 0) != 0 ||
       ::syscall(SYS_setresuid, 0, 0, 0) != 0)) {
    give_up();
  }
  ::execve(launch.path, launch.arguments, launch.environment);
  give_up();
  ::_exit(127);
}

/// A started child; kills its group and reaps it when it goes away.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!status_) {
      kill_group();
      int status = 0;
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
    }
  }

  void kill_group() const {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
  }

  /// Exit status or 128 + signal once it has ended.
  std::optional<int> poll_status() {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return status_;
  }

 private:
  pid_t pid_;
  std::optional<int> status_;
};

Result<pid_t> start(const Command& command, const Pipe& out, const Pipe& err) {
  auto report = make_pipe();
  if (!report) {
    return fail(std::move(report).error());
  }
  std::vector<std::string> arguments{command.path};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : command.environment) {
    environment.push_back(name + "=" + value);
  }
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  const Launch launch{.path = command.path.c_str(),
                      .arguments = argument_pointers.data(),
                      .environment = environment_pointers.data(),
                      .output = out.write.get(),
                      .errors = err.write.get(),
                      .report = report->write.get(),
                      .as_root = command.as_root};
  std::optional<RaisedCapabilities> raised;
  if (command.as_root) {
    raised.emplace({CAP_SETUID, CAP_SETGID});
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    child(launch);
  }
  const int fork_error = errno;
  raised.reset();
  if (pid < 0) {
    return fail(errno_error(fork_error, "start " + command.path));
  }
  report->write.reset();
  int exec_error = 0;
  ssize_t count = 0;
  do {
    count = ::read(report->read.get(), &exec_error, sizeof(exec_error));
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof(exec_error))) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return fail(errno_error(exec_error, "run " + command.path));
  }
  return pid;
}

/// Collects stdout: whole, or line by line.
class Output {
 public:
  Output(std::size_t limit, const std::function<Result<>(std::string_view)>* line)
      : limit_(limit), line_(line) {}

  Result<> add(std::string_view data) {
    if (line_ == nullptr) {
      if (text_.size() + data.size() > limit_) {
        return fail(ErrorCode::kUnavailable, "more than {} bytes of output", limit_);
      }
      text_.append(data);
      return {};
    }
    while (!data.empty()) {
      const std::size_t end = data.find('\n');
      if (text_.size() + std::min(end, data.size()) > limit_) {
        return fail(ErrorCode::kUnavailable, "a line of more than {} bytes", limit_);
      }
      if (end == std::string_view::npos) {
        text_.append(data);
        return {};
      }
      text_.append(data.substr(0, end));
      data.remove_prefix(end + 1);
      Result<> done = (*line_)(text_);
      text_.clear();
      if (!done) {
        return done;
      }
    }
    return {};
  }

  /// A last line without an end.
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
  const std::function<Result<>(std::string_view)>* line_;
  std::string text_;
};

/// One read of what is there; closes the descriptor at its end.
std::string_view read_some(UniqueFd& fd, std::span<char> buffer) {
  const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count > 0) {
    return {buffer.data(), static_cast<std::size_t>(count)};
  }
  if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    fd.reset();
  }
  return {};
}

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
                                       const std::stop_token& stop);
};

Result<CommandResult> RealRunner::execute(const Command& command,
                                          const std::function<Result<>(std::string_view)>* line,
                                          const std::stop_token& stop) {
  if (!command.path.starts_with('/')) {
    return fail(ErrorCode::kInvalidArgument, "run {}: not an absolute path",
                printable(command.path));
  }
  auto out = make_pipe();
  auto err = make_pipe();
  if (!out || !err) {
    return fail(std::move(!out ? out : err).error());
  }
  const UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  auto pid = start(command, *out, *err);
  if (!pid) {
    return fail(std::move(pid).error());
  }
  Child child(*pid);
  out->write.reset();
  err->write.reset();
  ::fcntl(out->read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err->read.get(), F_SETFL, O_NONBLOCK);
  const std::stop_callback on_stop(stop, [&wake] {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake.get(), &one, sizeof(one)));
  });

  const auto deadline = SteadyClock::now() + command.timeout;
  Output output(command.max_output_bytes, line);
  CommandResult result;
  std::vector<char> buffer(65536);
  while (true) {
    const auto status = child.poll_status();
    // A grandchild may hold the pipes open for ever: once the child is gone, what is there is all.
    if (status && !out->read.valid() && !err->read.valid()) {
      result.exit_status = *status;
      break;
    }
    if (stop.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "run {}: stopped", command.path);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) {
      return fail(ErrorCode::kTimeout, "run {}: no end within {} ms", command.path,
                  command.timeout.count());
    }
    std::array<pollfd, 3> fds{{{.fd = wake.get(), .events = POLLIN, .revents = 0},
                               {.fd = out->read.get(), .events = POLLIN, .revents = 0},
                               {.fd = err->read.get(), .events = POLLIN, .revents = 0}}};
    const bool reaping = status.has_value() || (!out->read.valid() && !err->read.valid());
    const auto wait =
        reaping || out->read.valid() ? std::min(left, reaping ? kReapPoll : left) : left;
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::min<long>(wait.count(), 1000)));
    if (ready == 0 && status) {
      out->read.reset();  // held by a grandchild, nothing more in it
      err->read.reset();
      continue;
    }
    if (out->read.valid() && (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      const std::string_view data = read_some(out->read, buffer);
      if (auto added = output.add(data); !added) {
        return fail(std::move(added).error().with_context("run " + command.path));
      }
    }
    if (err->read.valid() && (fds[2].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      const std::string_view data = read_some(err->read, buffer);
      result.error_text.append(
          data.substr(0, std::min(data.size(), kMaxErrorText - result.error_text.size())));
    }
  }
  child.kill_group();  // what the child left behind in its group
  if (auto finished = output.finish(); !finished) {
    return fail(std::move(finished).error().with_context("run " + command.path));
  }
  result.output = output.take();
  return result;
}

}  // namespace

CommandRunner& real_runner() {
  static RealRunner runner;
  return runner;
}

Result<std::string> find_program(std::string_view name, std::string_view search_path) {
  for (const std::string_view directory : split(search_path, ':')) {
    if (!directory.starts_with('/')) {
      continue;  // an empty or relative entry would mean the current directory
    }
    std::string path = std::string(directory) + "/" + std::string(name);
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return fail(ErrorCode::kNotFound, "no program {} in {}", printable(name), printable(search_path));
}

}  // namespace ceems::os
