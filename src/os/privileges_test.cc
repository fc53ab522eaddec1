#include "os/privileges.h"

#include <grp.h>
#include <sys/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "os/signals.h"
#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

/// Runs `body` in a child, so this process stays what it is; 0 is success, else the failed step.
int in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(Privileges, RootBecomesTheUserAndKeepsOnlyWhatIsAskedFor) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to change the user";
  }
  const testing::TempDir dir;
  const std::string secret = dir.write("secret", "x").string();
  ::chmod(secret.c_str(), 0400);
  ::chmod(dir.path().c_str(), 0755);
  EXPECT_EQ(
      in_child([&] {
        if (!drop_privileges("nobody", {CAP_DAC_READ_SEARCH})) {
          return 1;
        }
        if (::geteuid() == 0 || ::getegid() == 0 || ::getgroups(0, nullptr) != 0) {
          return 2;
        }
        if (std::ifstream(secret).good()) {
          return 3;
        }
        {
          const RaisedCapabilities raised({CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN});
          if (!std::ifstream(secret).good()) {
            return 4;
          }
        }
        if (std::ifstream(secret).good()) {
          return 5;
        }
        return may_raise(CAP_DAC_READ_SEARCH) && !may_raise(CAP_SETUID) && ::setuid(0) != 0 ? 0 : 6;
      }),
      0);
}

TEST(Privileges, AnUnknownUserIsAnError) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to change the user";
  }
  const auto dropped = drop_privileges("no-such-user-here", {});
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().message, "unknown user no-such-user-here");
}

TEST(Privileges, NamesCapabilities) {
  EXPECT_EQ(capability_name(CAP_SYS_PTRACE), "cap_sys_ptrace");
  EXPECT_EQ(default_run_as_user().empty(), false);
}

TEST(Signals, NotifyReachesPathAndAbstractSockets) {
  const testing::TempDir dir;
  for (const std::string& name :
       {(dir.path() / "notify").string(), std::string("@ceems-test-notify")}) {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') {
      address.sun_path[0] = '\0';
    }
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    notify_systemd("READY=1");
    std::array<char, 64> buffer{};
    EXPECT_EQ(::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT), 7);
    EXPECT_STREQ(buffer.data(), "READY=1");
  }
  ::unsetenv("NOTIFY_SOCKET");
  notify_systemd("READY=1");
}

}  // namespace
}  // namespace ceems::os
