#include "os/signals.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "testing/child.h"
#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

void set_notify_socket(const std::string& name) {
  ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
}

TEST(Signals, AreReturnedOneByOne) {
  const int status = testing::status_of_child([] {
    block_signals();
    ::raise(SIGPIPE);  // blocked, so a closed connection does not end the program
    ::kill(::getpid(), SIGHUP);
    if (wait_for_signal() != SIGHUP) {
      return 1;
    }
    ::kill(::getpid(), SIGHUP);
    if (wait_for_signal() != SIGHUP) {
      return 2;
    }
    ::kill(::getpid(), SIGTERM);
    return wait_for_signal() == SIGTERM ? 0 : 3;
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Signals, ASecondStopSignalEndsTheProgramAtOnce) {
  for (const int first : {SIGINT, SIGTERM}) {
    const int status = testing::status_of_child([first] {
      block_signals();
      ::kill(::getpid(), first);
      if (wait_for_signal() != first) {
        return 1;
      }
      ::kill(::getpid(), SIGINT);
      return 2;
    });
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGINT);
  }
}

/// A socket that receives what is sent to this path, or to this abstract name if it begins with @.
UniqueFd receiver(const std::string& name) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') {
    address.sun_path[0] = '\0';
  }
  EXPECT_TRUE(socket.valid());
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
            0)
      << name;
  return socket;
}

/// What has been sent to the socket; empty if nothing has.
std::string received(const UniqueFd& socket) {
  std::array<char, 64> buffer{};
  const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

TEST(Signals, NotifyReachesPathAndAbstractSockets) {
  const testing::TempDir dir;
  for (const std::string& name :
       {(dir.path() / "notify").string(), std::string("@ceems-test-notify")}) {
    const UniqueFd socket = receiver(name);
    set_notify_socket(name);
    notify_systemd("READY=1");
    EXPECT_EQ(received(socket), "READY=1");
    set_notify_socket("");
    notify_systemd("READY=1");
    EXPECT_EQ(received(socket), "");
  }
}

TEST(Signals, NotifyIgnoresNamesThatAreNotSockets) {
  const testing::TempDir dir;
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  const std::string full = dir.path() / std::string(106 - dir.path().string().size(), 'x');
  ASSERT_EQ(full.size() + 1, sizeof(sockaddr_un::sun_path));
  const UniqueFd relative = receiver("relative");
  const UniqueFd cut_off = receiver(full);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto files = open_files();
  for (const std::string& name : {std::string("relative"), full + "x", full + std::string(100, 'x'),
                                  std::string("/nonexistent/socket"), std::string()}) {
    set_notify_socket(name);
    notify_systemd("READY=1");
    EXPECT_EQ(received(relative), "") << name;
    EXPECT_EQ(received(cut_off), "") << name;
  }
  EXPECT_EQ(open_files(), files);
  set_notify_socket(full);  // the longest name that is one
  notify_systemd("READY=1");
  EXPECT_EQ(received(cut_off), "READY=1");
  set_notify_socket("");
  std::filesystem::current_path(before);
}

TEST(Signals, WaitingEndsWithoutASignal) {
  const int status = testing::status_of_child([] {
    block_signals();
    if (wait_for_signal(std::chrono::milliseconds(1))) {
      return 1;
    }
    ::kill(::getpid(), SIGHUP);
    return wait_for_signal(std::chrono::milliseconds(10000)) == SIGHUP ? 0 : 2;
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Signals, TheWatchdogLimitIsThatOfThisProcess) {
  const auto limit = [](const std::string& time, const std::string& process) {
    ::setenv("WATCHDOG_USEC", time.c_str(), 1);
    ::setenv("WATCHDOG_PID", process.c_str(), 1);
    return watchdog_limit();
  };
  EXPECT_EQ(limit("30000000", ""), std::chrono::seconds(30));
  EXPECT_EQ(limit("30000000", std::to_string(::getpid())), std::chrono::seconds(30));
  EXPECT_EQ(limit("30000000", "1"), std::nullopt);
  for (const char* time : {"", "0", "-5", "soon", "99999999999999999999"}) {
    EXPECT_EQ(limit(time, ""), std::nullopt) << time;
  }
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("WATCHDOG_PID");
  EXPECT_EQ(watchdog_limit(), std::nullopt);
}

}  // namespace
}  // namespace ceems::os
