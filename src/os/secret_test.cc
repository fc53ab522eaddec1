#include "os/secret.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "os/privileges.h"
#include "testing/child.h"
#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

TEST(Secret, IsGivenDirectlyOrReadFromItsFile) {
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
  EXPECT_EQ(refused.error().message, large + ": too large for a secret, expected less than 1 MiB");
}

TEST(Secret, OfRootCanBeReadWhileTheCapabilityIsKept) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root is needed to change the user";
  }
  const testing::TempDir dir;
  const std::string file = dir.write("key", "s3cret\n").string();
  ::chmod(file.c_str(), 0400);
  ::chmod(dir.path().c_str(), 0700);
  const auto read_as_nobody = [&](const std::vector<Capability>& keep) {
    return testing::in_child([&] {
      if (!drop_privileges("nobody", keep)) {
        return 1;
      }
      const auto secret = read_secret("", file);
      if (!secret) {
        return secret.error().code == ErrorCode::kPermissionDenied && file_state(file).empty() ? 2
                                                                                               : 3;
      }
      return *secret == "s3cret" && !file_state(file).empty() ? 0 : 4;
    });
  };
  EXPECT_EQ(read_as_nobody({CAP_DAC_READ_SEARCH}), 0);
  EXPECT_EQ(read_as_nobody({}), 2);
}

}  // namespace
}  // namespace ceems::os
