#include "os/daemon.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ceems::os {
namespace {

/// The exit status of `main` in a child process, and what it wrote to standard error.
struct Outcome {
  int status = -1;
  std::string text = {};
};

Outcome outcome_of(int (*run)(int argc, const char* const* argv)) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    return {};
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    std::array<char, 2> name{'x', '\0'};
    std::array<char*, 2> argv{name.data(), nullptr};
    ::_exit(daemon_main("ceems_test", 1, argv.data(), run));
  }
  ::close(ends[1]);
  Outcome outcome;
  std::array<char, 1000> buffer{};
  while (true) {
    const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
    if (count <= 0) {
      break;
    }
    outcome.text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(Daemon, ServesUntilItIsStopped) {
  const Outcome outcome = outcome_of([](int /*argc*/, const char* const* /*argv*/) {
    ::kill(::getpid(), SIGHUP);
    int hangups = 0;
    serve_until_stopped([&hangups] {
      ++hangups;
      ::kill(::getpid(), hangups == 3 ? SIGTERM : SIGHUP);
    });
    return 40 + hangups;
  });
  EXPECT_EQ(outcome.status, 43);
  EXPECT_NE(outcome.text.find("msg=stopping signal=15"), std::string::npos) << outcome.text;
}

/// Binds the socket that systemd would give a daemon in $NOTIFY_SOCKET.
int notify_socket(const char* name) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string_view text(name);
  std::ranges::copy(text, std::begin(address.sun_path));
  address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  if (socket < 0 || ::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    std::perror("notify socket");
    std::abort();
  }
  ::setenv("NOTIFY_SOCKET", name, 1);
  ::setenv("WATCHDOG_USEC", "3000", 1);
  return socket;
}

std::string received(int socket) {
  std::array<char, 64> buffer{};
  const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  return count < 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(count));
}

TEST(Daemon, TheWatchdogHearsOfItAsLongAsItWorks) {
  const Outcome outcome = outcome_of([](int /*argc*/, const char* const* /*argv*/) {
    const int socket = notify_socket("@ceems-test-watchdog");
    int asked = 0;
    serve_until_stopped([] {},
                        [&asked] {
                          if (++asked == 4) {
                            ::kill(::getpid(), SIGTERM);
                          }
                          return asked <= 2;
                        });
    std::string all;
    for (std::string one = received(socket); !one.empty(); one = received(socket)) {
      all += one + ";";
    }
    return asked == 4 && all == "READY=1;WATCHDOG=1;WATCHDOG=1;STOPPING=1;" ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

TEST(Daemon, RaisesTheFileLimitToTheHardLimit) {
  const Outcome outcome = outcome_of([](int /*argc*/, const char* const* /*argv*/) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 100;
    ::setrlimit(RLIMIT_NOFILE, &files);
    raise_file_limit();
    ::getrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur > 100 && files.rlim_cur == files.rlim_max ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

TEST(Daemon, LogsItsVersionHostAndFileLimitAtStart) {
  const Outcome outcome = outcome_of([](int /*argc*/, const char* const* /*argv*/) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 123;
    ::setrlimit(RLIMIT_NOFILE, &files);
    log_start("ceems_test");
    return 0;
  });
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size());
  EXPECT_NE(outcome.text.find("msg=\"starting ceems_test\" version="), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find(" hostname=" + std::string(host.data()) + " open_files=123\n"),
            std::string::npos)
      << outcome.text;
}

TEST(Daemon, ReportsInOneLineWhyItGivesUp) {
  const Outcome thrown = outcome_of([](int /*argc*/, const char* const* /*argv*/) -> int {
    throw std::runtime_error("no memory");
  });
  EXPECT_EQ(thrown.status, 1);
  EXPECT_EQ(thrown.text, "ceems_test: no memory\n");
  const Outcome early = outcome_of([](int /*argc*/, const char* const* /*argv*/) {
    return give_up_early({ErrorCode::kParse, "x.yml:3: unknown key"});
  });
  EXPECT_EQ(early.status, 1);
  constexpr std::size_t kTime = std::string_view("2026/01/01 00:00:00").size();
  ASSERT_GT(early.text.size(), kTime);
  EXPECT_EQ(early.text.substr(kTime), " x.yml:3: unknown key\n");
  const Outcome late = outcome_of([](int /*argc*/, const char* const* /*argv*/) {
    return give_up({ErrorCode::kParse, "port 1"});
  });
  EXPECT_EQ(late.status, 1);
  EXPECT_NE(late.text.find("level=ERROR"), std::string::npos) << late.text;
  EXPECT_NE(late.text.find("msg=\"cannot start\" err=\"port 1\""), std::string::npos) << late.text;
}

}  // namespace
}  // namespace ceems::os
