#include "os/privileges.h"

#include <grp.h>
#include <sys/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "testing/child.h"
#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

TEST(Privileges, RootBecomesTheUserAndKeepsOnlyTheGivenCapabilities) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to change the user";
  }
  const testing::TempDir dir;
  const std::string secret = dir.write("secret", "x").string();
  ::chmod(secret.c_str(), 0400);
  ::chmod(dir.path().c_str(), 0755);
  EXPECT_EQ(
      testing::in_child([&] {
        if (!drop_privileges("nobody", {CAP_DAC_READ_SEARCH})) {
          return 1;
        }
        const char* home = ::getenv("HOME");
        if (home == nullptr || std::string_view(home) != "/nonexistent") {
          return 7;
        }
        if (::geteuid() == 0 || ::getegid() == 0 || ::getgroups(0, nullptr) != 0) {
          return 2;
        }
        if (std::ifstream(secret).good()) {
          return 3;
        }
        {
          const RaisedCapabilities outer({CAP_DAC_READ_SEARCH});
          const RaisedCapabilities inner({CAP_DAC_READ_SEARCH});
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

TEST(Privileges, AUserIsAnExistingNameOrNumber) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to change the user";
  }
  EXPECT_EQ(
      testing::in_child([] { return drop_privileges("65534", {}) && ::getuid() == 65534 ? 0 : 1; }),
      0);
  EXPECT_EQ(drop_privileges("4000000001", {}).error().message, "unknown user 4000000001");
  EXPECT_EQ(drop_privileges("x\ny", {}).error().message, "unknown user x\\x0ay");
}

TEST(Privileges, WithoutRootTheHeldSetIsReducedToTheGivenOne) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to start with capabilities";
  }
  EXPECT_EQ(
      testing::in_child([] {
        if (!drop_privileges("nobody", {CAP_SETUID, CAP_SYS_PTRACE})) {
          return 1;
        }
        if (!drop_privileges("nobody", {CAP_SYS_PTRACE, CAP_NET_ADMIN})) {
          return 2;
        }
        return may_raise(CAP_SYS_PTRACE) && !may_raise(CAP_SETUID) && !may_raise(CAP_NET_ADMIN) ? 0
                                                                                                : 3;
      }),
      0);
}

TEST(Privileges, RaisingInOneThreadDoesNotAffectOthers) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to start with capabilities";
  }
  const testing::TempDir dir;
  const std::string secret = dir.write("secret", "x").string();
  ::chmod(secret.c_str(), 0400);
  ::chmod(dir.path().c_str(), 0755);
  EXPECT_EQ(testing::in_child([&] {
              if (!drop_privileges("nobody", {CAP_DAC_READ_SEARCH})) {
                return 1;
              }
              std::latch raised_there(1);
              std::latch looked_here(1);
              bool other_reads = false;
              std::thread other([&] {
                const RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
                raised_there.count_down();
                looked_here.wait();
                other_reads = std::ifstream(secret).good();
              });
              raised_there.wait();
              const bool this_reads = std::ifstream(secret).good();
              looked_here.count_down();
              other.join();
              return other_reads && !this_reads ? 0 : 2;
            }),
            0);
}

TEST(Privileges, CanStillListItsDescriptors) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to change the user";
  }
  EXPECT_EQ(testing::in_child([] {
              if (!drop_privileges("nobody", {})) {
                return 1;
              }
              std::error_code code;
              const std::filesystem::directory_iterator open("/proc/self/fd", code);
              return code ? 2 : 0;
            }),
            0);
}

TEST(Privileges, NamesCapabilities) {
  EXPECT_EQ(capability_name(CAP_SYS_PTRACE), "cap_sys_ptrace");
}

TEST(Privileges, TheDefaultUserIsNobodyForRoot) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed";
  }
  EXPECT_EQ(default_run_as_user(), "nobody");
  EXPECT_EQ(testing::in_child([] {
              return ::setgid(1) == 0 && ::setuid(1) == 0 && default_run_as_user() == "daemon" ? 0
                                                                                               : 1;
            }),
            0);
}

}  // namespace
}  // namespace ceems::os
