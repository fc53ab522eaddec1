#include "exporter/run/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace ceems::exporter::run {
namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalled = 128;

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));  // execvp() does not change them
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// Only functions that are safe after fork() of a process with threads.
void write_error(std::string_view text) {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

[[noreturn]] void execute(const std::vector<char*>& words) {
  sigset_t blocked = passed_signals();
  ::sigaddset(&blocked, SIGCHLD);
  ::sigaddset(&blocked, SIGPIPE);  // blocked by every program of CEEMS
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  ::execvp(words.front(), words.data());
  const int error = errno;
  write_error("ceems_exporter run: ");
  write_error(words.front());
  write_error(error == ENOENT ? ": no such program\n" : ": cannot be executed\n");
  ::_exit(error == ENOENT ? kNotFound : kNotExecutable);
}

}  // namespace

sigset_t passed_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}) {
    ::sigaddset(&set, number);
  }
  return set;
}

void prepare_signals() {
  sigset_t set = passed_signals();
  ::sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, nullptr);  // ignored, it would leave nothing to wait for
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

Result<pid_t> start_command(const std::vector<std::string>& words) {
  const std::vector<char*> pointers = pointers_to(words);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail(errno_error(errno, "fork"));
  }
  if (pid == 0) {
    execute(pointers);
  }
  return pid;
}

void become_command(const std::vector<std::string>& words) {
  execute(pointers_to(words));
}

Result<pid_t> start_helper(const std::vector<std::string>& words, int output) {
  const std::vector<char*> pointers = pointers_to(words);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail(errno_error(errno, "fork"));
  }
  if (pid == 0) {
    ::setpgid(0, 0);
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) {
      ::dup2(nothing, STDIN_FILENO);
    }
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    execute(pointers);
  }
  return pid;
}

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? kSignalled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace ceems::exporter::run
