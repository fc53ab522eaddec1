#include "os/secret.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "os/privileges.h"
#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

TEST(Secret, IsGivenOrReadFromItsFile) {
  const testing::TempDir dir;
  EXPECT_EQ(read_secret("direct", ""), "direct");
  EXPECT_EQ(read_secret("", dir.write("key", " s3cret\n").string()), "s3cret");
  EXPECT_EQ(read_secret("", dir.write("empty", "").string()), "");
  const auto missing = read_secret("", (dir.path() / "none").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  const std::string large = dir.write("large", std::string(std::size_t{1} << 20U, 'x')).string();
  const auto refused = read_secret("", large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, large + ": too large for a secret");
}

/// What another user than root reads of a file of root's, having kept `keep`.
std::string read_as_nobody(const std::string& file, const std::vector<Capability>& keep) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool dropped = drop_privileges("nobody", keep).has_value();
    const auto secret = read_secret("", file);
    const std::string told = !dropped ? "root"
                             : secret ? *secret
                                      : std::to_string(static_cast<int>(secret.error().code));
    const bool written = ::write(ends[1], told.data(), told.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string told(100, '\0');
  told.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], told.data(), 100))));
  ::close(ends[0]);
  ::waitpid(pid, nullptr, 0);
  return told;
}

TEST(Secret, OfRootIsReadAsLongAsTheCapabilityWasKept) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to change the user";
  }
  const testing::TempDir dir;
  const std::string file = dir.write("key", "s3cret\n").string();
  ::chmod(file.c_str(), 0400);
  ::chmod(dir.path().c_str(), 0700);
  EXPECT_EQ(read_as_nobody(file, {CAP_DAC_READ_SEARCH}), "s3cret");
  EXPECT_EQ(read_as_nobody(file, {}),
            std::to_string(static_cast<int>(ErrorCode::kPermissionDenied)));
}

}  // namespace
}  // namespace ceems::os
