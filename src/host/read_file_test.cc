#include "host/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

TEST(ReadFile, ReadsWholeFilesOfAnySize) {
  const testing::TempDir dir;
  for (const std::size_t size : {0UL, 1UL, 1023UL, 1024UL, 8192UL, 8193UL, 3UL << 20U}) {
    const auto path = dir.write("f", std::string(size, 'x'));
    const auto text = read_file(path.string());
    ASSERT_TRUE(text);
    EXPECT_EQ(text->size(), size);
  }
}

TEST(ReadFile, ReadsPseudoFilesThatArriveInPieces) {
  // The kernel returns this file in pieces of about a page.
  const auto text = read_file(std::string("/proc/self/smaps"));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("[stack]"), std::string::npos);
}

TEST(ReadFile, TruncatesAtTheLimitAndReusesTheBuffer) {
  const testing::TempDir dir;
  const auto path = dir.write("f", std::string(5000, 'x'));
  std::string buffer = "old";
  ASSERT_TRUE(read_file(path.c_str(), buffer, 3000));
  EXPECT_EQ(buffer.size(), 3000U);
  ASSERT_TRUE(read_file(path.c_str(), buffer, 0));
  EXPECT_EQ(buffer, "");
}

TEST(ReadFile, ReportsThePathAndTheReason) {
  const auto missing = read_file(std::string("/nonexistent/file"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, "open /nonexistent/file: No such file or directory");
  EXPECT_FALSE(read_file(std::string("/proc")));
}

TEST(ReadFile, DoesNotWaitForAFifo) {
  const testing::TempDir dir;
  const auto path = dir.path() / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto text = read_file(path.string());
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "");
}

TEST(ReadFileAt, OpensBelowADirectory) {
  const testing::TempDir dir;
  dir.write("sub/f", "text\n");
  const UniqueFd fd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string buffer;
  ASSERT_TRUE(read_file_at(fd.get(), "sub/f", buffer));
  EXPECT_EQ(buffer, "text\n");
  const auto missing = read_file_at(fd.get(), "gone", buffer);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(Reread, SeesNewContentFromTheStart) {
  const testing::TempDir dir;
  const auto path = dir.write("f", "first");
  auto fd = open_file(path.c_str());
  ASSERT_TRUE(fd);
  std::string buffer;
  ASSERT_TRUE(reread(*fd, buffer));
  EXPECT_EQ(buffer, "first");
  dir.write("f", "2nd");
  ASSERT_TRUE(reread(*fd, buffer));
  EXPECT_EQ(buffer, "2nd");
  EXPECT_FALSE(reread(UniqueFd(), buffer));
}

TEST(Directory, DistinguishesASysfsFromACopy) {
  const testing::TempDir copy;
  EXPECT_FALSE(is_own_sysfs(copy.path().string()));
  EXPECT_FALSE(is_own_sysfs("/proc"));
  EXPECT_FALSE(is_own_sysfs("/nonexistent"));
  EXPECT_TRUE(is_own_sysfs("/sys"));
  std::ifstream mounts("/proc/self/mounts");
  const std::string text{std::istreambuf_iterator<char>(mounts), {}};
  EXPECT_EQ(is_own_sysfs("/sys/kernel"), text.find(" /sys sysfs ") != std::string::npos);
}

}  // namespace
}  // namespace ceems::host
