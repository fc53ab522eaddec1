#include "exporter/run/directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

TEST(DataDirectory, IsNewAndPrivate) {
  const testing::TempDir root;
  const std::string path = (root.path() / "run").string();
  const auto directory = DataDirectory::create(path);
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->path(), path);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  ASSERT_TRUE(directory->replace("a", "one"));
  ASSERT_TRUE(directory->replace("a", "two"));
  EXPECT_EQ(directory->read("a", 10).value(), "two");
  EXPECT_THAT(directory->names().value(), ElementsAre("a"));
  ASSERT_EQ(::stat((path + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_TRUE(directory->has("a"));
  EXPECT_FALSE(directory->has("b"));
}

TEST(DataDirectory, GetsANumberIfThereIsData) {
  const testing::TempDir root;
  const std::string path = (root.path() / "run").string();
  fs::create_directory(path);
  EXPECT_EQ(DataDirectory::create(path)->path(), path);  // it is empty
  root.write("run/x", "");
  EXPECT_EQ(DataDirectory::create(path)->path(), path + "-2");
  root.write("run-2/x", "");
  root.write("run-3", "a file");
  EXPECT_EQ(DataDirectory::create(path)->path(), path + "-4");
}

TEST(DataDirectory, DoesNotFollowLinks) {
  const testing::TempDir root;
  fs::create_directory(root.path() / "victim");
  fs::create_directory_symlink(root.path() / "victim", root.path() / "run");
  const std::string path = (root.path() / "run").string();
  EXPECT_EQ(DataDirectory::create(path)->path(), path + "-2");
  EXPECT_FALSE(DataDirectory::open(path));

  const auto directory = DataDirectory::create((root.path() / "own").string()).value();
  root.write("victim/file", "secret");
  fs::create_symlink(root.path() / "victim/file", root.path() / "own/a");
  EXPECT_FALSE(directory.read("a", 100));
  EXPECT_FALSE(directory.create_file("a"));
  fs::create_symlink(root.path() / "victim/file", root.path() / "own/.a.new");
  EXPECT_TRUE(directory.replace("a", "new"));  // the link itself is replaced
  EXPECT_EQ(directory.read("a", 100).value(), "new");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(root.path() / "own/a")));
  const auto victim = DataDirectory::open((root.path() / "victim").string()).value();
  EXPECT_EQ(victim.read("file", 100).value(), "secret");
}

TEST(DataDirectory, OfAnotherUserIsRefused) {
  if (::geteuid() == 0) {
    const testing::TempDir root;
    const std::string path = (root.path() / "run").string();
    fs::create_directory(path);
    ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
    EXPECT_FALSE(DataDirectory::open(path));
    EXPECT_EQ(DataDirectory::create(path)->path(), path + "-2");
  } else {
    EXPECT_FALSE(DataDirectory::open("/"));
  }
}

TEST(DataDirectory, ReadsRegularFilesOfSomeSizeOnly) {
  const testing::TempDir root;
  const auto directory = DataDirectory::create((root.path() / "run").string()).value();
  ASSERT_TRUE(directory.replace("a", "12345"));
  EXPECT_EQ(directory.read("a", 5).value(), "12345");
  EXPECT_FALSE(directory.read("a", 4));
  ASSERT_EQ(::mkfifo((root.path() / "run/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(directory.read("pipe", 100));  // and does not wait for a writer
  EXPECT_FALSE(directory.read("none", 100));
  EXPECT_FALSE(DataDirectory::create("/does/not/exist/run"));
}

}  // namespace
}  // namespace ceems::exporter::run
