#include "os/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "os/child.h"
#include "testing/temp_dir.h"

namespace ceems::os {
namespace {

std::string error_of(const std::string& path) {
  const auto text = read_regular_file(path, 10);
  return text ? "none" : text.error().message;
}

class FileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::size_t entries() const {
    const std::filesystem::directory_iterator all(dir_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  testing::TempDir dir_;
  std::string path_ = dir_.path() / "file";
};

TEST_F(FileTest, IsReplacedAsAWhole) {
  ASSERT_TRUE(replace_file(path_, "one"));
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(read_regular_file(path_, 10), "one");
  std::ifstream reader(path_);
  ASSERT_TRUE(replace_file(path_, "two"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "one");
  EXPECT_EQ(read_regular_file(path_, 10), "two");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, ReplacesALinkAndNotItsTarget) {
  const std::string target = dir_.write("target", "kept");
  std::filesystem::create_symlink(target, path_);
  ASSERT_TRUE(replace_file(path_, "new"));
  EXPECT_EQ(read_regular_file(target, 10), "kept");
  EXPECT_EQ(read_regular_file(path_, 10), "new");
}

TEST_F(FileTest, OvertakesTheDraftOfACrash) {
  dir_.write("file." + std::to_string(::getpid()), "half");
  ASSERT_TRUE(replace_file(path_, "new"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, IsNotTouchedByAFailure) {
  const auto missing = replace_file(dir_.path() / "none/file", "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("none/file"), std::string::npos);
  dir_.write("file/inside", "x");  // a directory cannot be replaced by a file
  EXPECT_FALSE(replace_file(path_, "x"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, IsReadOnlyIfRegularAndSmall) {
  EXPECT_EQ(error_of(path_), "open " + path_ + ": No such file or directory");
  dir_.write("file", "0123456789");
  EXPECT_EQ(read_regular_file(path_, 10), "0123456789");
  EXPECT_EQ(read_regular_file(path_, 9).error().message, path_ + ": larger than 9 bytes");
  EXPECT_EQ(error_of(dir_.path()), dir_.path().string() + ": expected a regular file");
  EXPECT_EQ(error_of("/dev/zero"), "/dev/zero: expected a regular file");
  const std::string pipe = dir_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(pipe), pipe + ": expected a regular file");
  const std::string link = dir_.path() / "link";
  std::filesystem::create_symlink(path_, link);
  EXPECT_EQ(error_of(link), link + ": expected a regular file, got a symbolic link");
}

TEST(WriteAll, WritesOnAfterShortWritesAndSignals) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_GT(::fcntl(pipe->write.get(), F_SETPIPE_SZ, 4096), 0);
  // Without SA_RESTART, so that a signal interrupts a write that waits for the reader.
  struct sigaction counting{};
  struct sigaction before{};
  static std::atomic<int> signals;
  signals = 0;
  counting.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGUSR1, &counting, &before), 0);
  std::string text;
  for (int i = 0; i < 50'000; ++i) {
    text += std::to_string(i) + ",";
  }
  const pthread_t writer = ::pthread_self();
  std::string got;
  std::jthread reader([&] {
    std::array<char, 1000> buffer{};
    ssize_t count = 0;
    // The pipe is full before each signal, so that most find the writer waiting.
    while ((count = ::read(pipe->read.get(), buffer.data(), buffer.size())) > 0) {
      got.append(buffer.data(), static_cast<std::size_t>(count));
      if (got.size() < text.size() / 2) {
        ::pthread_kill(writer, SIGUSR1);
      }
    }
  });
  const auto done = write_all(pipe->write.get(), text);
  pipe->write.reset();
  reader.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(done);
  EXPECT_GT(signals, 0);
  EXPECT_TRUE(got == text) << got.size() << " of " << text.size() << " bytes";
}

TEST(WriteAll, SaysWhyItFailed) {
  const auto closed = write_all(-1, "x");
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, "write: Bad file descriptor");
  EXPECT_TRUE(write_all(-1, "")) << "there is nothing to write";
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  const auto none = write_all(full.get(), "x", "write the report");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "write the report: No space left on device");
}

}  // namespace
}  // namespace ceems::os
