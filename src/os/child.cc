#include "os/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/strings.h"
#include "os/privileges.h"

namespace ceems::os {
namespace {

constexpr int kEndPollMs = 20;
constexpr int kEndPolls = 100;
constexpr int kMaxDescriptors = 65536;

/// A NULL-terminated array for exec that points into `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    out.push_back(text.data());
  }
  out.push_back(nullptr);
  return out;
}

bool contains_nul(const Command& command) {
  const auto bad = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  return bad(command.path) || std::ranges::any_of(command.arguments, bad) ||
         std::ranges::any_of(command.environment, [&](const auto& entry) {
           return bad(entry.first) || bad(entry.second);
         });
}

/// What the child needs. All of it is made before fork(): after it, another thread may have held
/// any lock, so only async-signal-safe calls are allowed.
struct Launch {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int output;
  int errors;
  int report;
  int descriptors;
  bool as_root;
};

/// Marks all descriptors except stdin, stdout and stderr to close on exec. That includes the write
/// end of the report, so the parent sees its end when exec succeeds.
void close_all_but_stdio_on_exec(int descriptors) {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
    return;
  }
  for (int fd = 3; fd < descriptors; ++fd) {  // before Linux 5.11
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

[[noreturn]] void run_child(const Launch& launch) {
  const auto give_up = [&](int error) {
    static_cast<void>(!::write(launch.report, &error, sizeof(error)));
    ::_exit(127);
  };
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int input = ::open("/dev/null", O_RDONLY);
  if (input < 0 || ::dup2(input, 0) < 0 || ::dup2(launch.output, 1) < 0 ||
      ::dup2(launch.errors, 2) < 0) {
    give_up(errno);
  }
  close_all_but_stdio_on_exec(launch.descriptors);
  if (launch.as_root &&
      // Raw system calls: glibc's wrappers would signal threads that this process does not have.
      (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, 0, 0, 0) != 0 ||
       ::syscall(SYS_setresuid, 0, 0, 0) != 0)) {
    give_up(-errno);
  }
  ::execve(launch.path, launch.arguments, launch.environment);
  give_up(errno);
  std::abort();  // not reached; the lambda does not return
}

pid_t wait_for(pid_t pid, int& status) {
  pid_t reaped = 0;
  do {
    reaped = ::waitpid(pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  return reaped;
}

/// Sends SIGKILL to a group that runs as root while this process does not.
void kill_group_as_root(pid_t group) {
  const RaisedCapabilities raised({CAP_SETUID});
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::syscall(SYS_setresuid, 0, 0, 0);
    ::kill(-group, SIGKILL);
    ::_exit(0);
  }
  if (pid > 0) {
    int status = 0;
    wait_for(pid, status);
  }
}

/// The errno of a failed exec, the negative errno of a failed switch to root, 0 for success, or
/// ETIME if nothing is known by the deadline.
int read_report(int fd, Child::Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const auto wait = std::clamp<long>(left.count(), 0, 60'000);
    const int ready = ::poll(&waiting, 1, static_cast<int>(wait));
    if (ready == 0 && left.count() <= 0) {
      return ETIME;
    }
    if (ready <= 0) {
      continue;
    }
    int error = 0;
    const ssize_t count = ::read(fd, &error, sizeof(error));
    if (count == 0 || count == static_cast<ssize_t>(sizeof(error))) {
      return error;
    }
  }
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(errno_error(errno, "make a pipe"));
  }
  Pipe pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
  for (UniqueFd* end : {&pipe.read, &pipe.write}) {
    if (end->get() <= 2) {  // the program was started without stdin, stdout or stderr
      const int above = ::fcntl(end->get(), F_DUPFD_CLOEXEC, 3);
      if (above < 0) {
        return fail(errno_error(errno, "make a pipe"));
      }
      end->reset(above);
    }
  }
  return pipe;
}

Child::Child(pid_t pid, bool as_root)
    : pid_(pid), as_root_(as_root), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

Child::~Child() {
  if (pid_ > 0) {
    finish();
  }
}

Result<Child> Child::start(const Command& command, int output, int errors, Deadline deadline) {
  const std::string context = "run " + printable(command.path);
  if (!command.path.starts_with('/')) {
    return fail(ErrorCode::kInvalidArgument, "{}: not an absolute path", context);
  }
  if (contains_nul(command)) {
    return fail(ErrorCode::kInvalidArgument, "{}: an argument contains a NUL byte", context);
  }
  CEEMS_TRY(report, make_pipe());
  std::vector<std::string> arguments{command.path};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment;
  environment.reserve(command.environment.size());
  for (const auto& [name, value] : command.environment) {
    environment.push_back(fmt::format("{}={}", name, value));
  }
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const Launch launch{
      .path = command.path.c_str(),
      .arguments = argument_pointers.data(),
      .environment = environment_pointers.data(),
      .output = output,
      .errors = errors,
      .report = report.write.get(),
      .descriptors = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kMaxDescriptors)),
      .as_root = command.as_root};
  std::optional<RaisedCapabilities> raised;
  if (command.as_root) {
    raised.emplace({CAP_SETUID, CAP_SETGID});
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    run_child(launch);
  }
  const int fork_error = errno;
  raised.reset();
  if (pid < 0) {
    return fail(errno_error(fork_error, context));
  }
  Child child(pid, command.as_root);
  report.write.reset();
  const int error = read_report(report.read.get(), deadline);
  if (error == ETIME) {
    return fail(ErrorCode::kTimeout, "{}: not started after {} ms", context,
                command.timeout.count());
  }
  if (error != 0) {
    return fail(error > 0 ? errno_error(error, context)
                          : errno_error(-error, context + " as root"));
  }
  return child;
}

bool Child::ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

void Child::kill_group() const {
  // The leader has not been reaped, so no other group can have this number.
  if (::kill(-pid_, SIGKILL) == 0) {
    return;
  }
  if (errno == EPERM && as_root_) {
    kill_group_as_root(pid_);
  } else {
    ::kill(pid_, SIGKILL);  // the child has not made its group yet
  }
}

std::optional<int> Child::finish() {
  kill_group();
  int tries = 0;
  while (!ended() && ++tries <= kEndPolls) {
    pollfd waiting{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, kEndPollMs);
  }
  const pid_t pid = std::exchange(pid_, -1);
  int status = 0;
  if (tries > kEndPolls || wait_for(pid, status) != pid) {
    return std::nullopt;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace ceems::os
