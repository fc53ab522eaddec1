#include "exporter/run/mark_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

/// Connects, says one thing and returns the answer.
std::string send_mark(const std::string& path, std::string_view text) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return "no socket";
  }
  ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  std::array<char, 64> buffer{};
  ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  if (size < 0 && errno == ECONNRESET) {  // closed with the text unread; the answer comes after it
    size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  }
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

class MarkSocketTest : public ::testing::Test {
 protected:
  /// A socket for the descendants of `self`.
  std::unique_ptr<MarkSocket> make(int self, const std::string& path = {}) {
    auto made = MarkSocket::create(
        {.job = job_, .self = self, .path = path, .temporary = root_.path().string()},
        real_clock());
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return nullptr;
    }
    (*made)->start();
    return *std::move(made);
  }
  static double results(const MarkSocket& socket) {
    double sum = 0;
    socket.ledger()->read([&](const marks::Ledger::View& view) {
      for (const auto& unit : view.units) {
        for (const auto& result : unit->marks.results()) {
          sum += result.total;
        }
      }
    });
    return sum;
  }

  testing::TempDir root_;
  Job job_ = describe_job([](const std::string&) { return std::string(); }, "n1", ::getpid());
};

TEST_F(MarkSocketTest, IsInADirectoryOfTheUserAloneAndGoesWithIt) {
  auto socket = make(::getpid());
  const auto directory = std::filesystem::path(socket->path()).parent_path();
  struct stat info{};
  ASSERT_EQ(::stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_EQ(directory.parent_path(), root_.path());
  socket.reset();
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(MarkSocketTest, TakesWhatProcessesOfTheRunSay) {
  const auto socket = make(::getpid());
  EXPECT_EQ(send_mark(socket->path(), "result step 5"), "ok");
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(send_mark(socket->path(), "result step 3") == "ok" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  socket->finish();
  EXPECT_EQ(results(*socket), 8);
}

TEST_F(MarkSocketTest, RefusesOtherProcessesOfTheUser) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();  // the run; this process does not belong to it
  if (child == 0) {
    char byte = 0;
    ::_exit(::read(ready[0], &byte, 1) == 1 ? 0 : 1);
  }
  const auto socket = make(child);
  EXPECT_EQ(send_mark(socket->path(), "result step 5"), "refused no_unit");
  ASSERT_EQ(::write(ready[1], "x", 1), 1);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  socket->finish();
  EXPECT_EQ(results(*socket), 0);
}

TEST_F(MarkSocketTest, TakesEverythingThatWasSentBeforeTheEnd) {
  const auto socket = make(::getpid());
  const UniqueFd sender(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket->path().c_str(), socket->path().size() + 1);
  ASSERT_EQ(::connect(sender.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(::send(sender.get(), "result step 1", 13, MSG_NOSIGNAL), 13);
  }
  ASSERT_EQ(::send(sender.get(), "begin solve", 11, MSG_NOSIGNAL), 11);
  socket->finish();
  EXPECT_EQ(results(*socket), 200);
  std::uint64_t ends = 0;
  socket->ledger()->read([&](const marks::Ledger::View& view) {
    ends = view.units.front()->marks.regions().front().count;
  });
  EXPECT_EQ(ends, 1U);
}

TEST_F(MarkSocketTest, OtherNodesUseTheSamePath) {
  const std::string path = (root_.path() / "ceems-run-x/mark.sock").string();
  auto first = make(::getpid(), path);
  EXPECT_EQ(first->path(), path);
  // Another agent on the same machine leaves it alone.
  const auto second = MarkSocket::create({.job = job_, .path = path}, real_clock());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
  EXPECT_EQ(send_mark(path, "result step 1"), "ok");
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(root_.path() / "ceems-run-x"));
}

TEST_F(MarkSocketTest, DoesNotUseADirectoryOfOthers) {
  const auto directory = root_.path() / "open";
  ASSERT_EQ(::mkdir(directory.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory.c_str(), 0770), 0);
  ASSERT_EQ(::symlink("/tmp", (root_.path() / "link").c_str()), 0);
  for (const char* name : {"open", "link", "none/deep"}) {
    const auto made = MarkSocket::create(
        {.job = job_, .path = (root_.path() / name / "mark.sock").string()}, real_clock());
    EXPECT_FALSE(made) << name;
  }
  EXPECT_TRUE(std::filesystem::is_directory(directory));
}

TEST_F(MarkSocketTest, LongPathsForTemporaryFilesAreNotUsed) {
  const auto made = MarkSocket::create(
      {.job = job_, .self = ::getpid(), .temporary = "/tmp/" + std::string(100, 'x')},
      real_clock());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)->path().find("/tmp/ceems-run-"), 0U);
}

}  // namespace
}  // namespace ceems::exporter::run
