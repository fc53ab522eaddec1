#include "cacct/caller.h"

#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Caller, IsTheRealUserWhateverTheEnvironmentSays) {
  ::setenv("USER", "somebody", 1);
  ::setenv("LOGNAME", "somebody", 1);
  const auto caller = find_caller();
  ASSERT_TRUE(caller) << caller.error().message;
  EXPECT_EQ(caller->uid, ::getuid());
  EXPECT_EQ(caller->login, ::getpwuid(::getuid())->pw_name);
  EXPECT_FALSE(caller->privileged);
  EXPECT_FALSE(shed_environment());
  EXPECT_STREQ(std::getenv("USER"), "somebody");
}

TEST(Caller, ReadsOwnConfigurationOnlyWithoutPrivileges) {
  ::setenv("XDG_CONFIG_HOME", "/home/a/.cfg", 1);
  ::setenv("HOME", "/home/a", 1);
  EXPECT_THAT(config_directories(true), ElementsAre("/etc/ceems"));
  EXPECT_THAT(config_directories(false), ElementsAre("/etc/ceems", "/home/a/.cfg/ceems"));
  ::unsetenv("XDG_CONFIG_HOME");
  EXPECT_THAT(config_directories(false), ElementsAre("/etc/ceems", "/home/a/.config/ceems"));
  ::setenv("HOME", "relative", 1);
  EXPECT_THAT(config_directories(false), ElementsAre("/etc/ceems"));
  ::unsetenv("HOME");
  EXPECT_THAT(config_directories(false), ElementsAre("/etc/ceems"));
}

/// In a child: the exit status tells what went wrong, 0 if nothing did.
int rights_of_a_privileged_program() {
  constexpr uid_t kUser = 65534;
  if (::setresgid(kUser, kUser, 0) != 0 || ::setresuid(kUser, kUser, 0) != 0) {
    return 1;
  }
  {
    const WithPrivileges privileges;
    if (::geteuid() != 0 || ::getegid() != 0) {
      return 2;
    }
  }
  if (::geteuid() != kUser || ::getegid() != kUser) {
    return 3;
  }
  const Caller caller{.login = "nobody", .uid = kUser, .gid = kUser, .privileged = true};
  if (!become(caller)) {
    return 4;
  }
  return ::setresuid(-1, 0, -1) == 0 || ::setresgid(-1, 0, -1) == 0 ? 5 : 0;
}

TEST(Caller, HasTheProgramsRightsForAWhileAndThenNeverAgain) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give away rights";
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::_exit(rights_of_a_privileged_program());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Caller, FindsTheFirstConfigurationFile) {
  const testing::TempDir dir;
  const std::string one = dir.path() / "one";
  const std::string two = dir.path() / "two";
  const auto none = find_config({one, two});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("no configuration file config.yml, config.yaml"));
  dir.write("two/config.yml", "");
  dir.write("one/cacct.yaml", "");
  EXPECT_EQ(find_config({one, two}).value_or(""), one + "/cacct.yaml");
  dir.write("one/config.yaml", "");
  EXPECT_EQ(find_config({one, two}).value_or(""), one + "/config.yaml");
}

}  // namespace
}  // namespace ceems::cacct
