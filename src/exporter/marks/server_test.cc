#include "exporter/marks/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::marks {
namespace {

/// One unit, in which this process is.
class OneUnit final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    auto snapshot = std::make_shared<UnitSnapshot>();
    snapshot->manager = "slurm";
    snapshot->units.emplace_back().uuid = "7";
    snapshot->units.back().path = "/job_7";
    return snapshot;
  }
};

class MarkServerTest : public ::testing::Test {
 protected:
  MarkServerTest() {
    const std::string proc = "proc/" + std::to_string(::getpid());
    const std::string uid = std::to_string(::geteuid());
    dir_.write(proc + "/stat", "1 (a) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4711 0\n");
    dir_.write(proc + "/status", "Uid:\t" + uid + "\t" + uid + "\n");
    dir_.write(proc + "/cgroup", "0::/job_7/step_0\n");
    dir_.write("cgroup/job_7/step_0/cgroup.procs", std::to_string(::getpid()) + "\n");
  }

  std::unique_ptr<Server> make(Limits limits = {}) {
    auto server = Server::create(
        path_,
        PeerFinder({dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"},
                   {std::make_shared<OneUnit>()}, clock_),
        ledger_, clock_, limits);
    if (!server) {
      ADD_FAILURE() << server.error().message;
      return nullptr;
    }
    (*server)->start();
    return *std::move(server);
  }
  UniqueFd connect() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    if (!socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      socket.reset();
    }
    return socket;
  }
  static bool send(const UniqueFd& socket, std::string_view text) {
    return ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(text.size());
  }
  /// What the server answers; empty at the end of the connection.
  static std::string answer(const UniqueFd& socket) {
    std::array<char, 64> buffer{};
    const auto size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  std::uint64_t dropped(Drop drop) {
    std::uint64_t count = 0;
    ledger_->read(
        [&](const Ledger::View& view) { count = view.dropped.at(static_cast<std::size_t>(drop)); });
    return count;
  }
  std::uint64_t taken() {
    std::uint64_t count = 0;
    ledger_->read([&](const Ledger::View& view) { count = view.taken; });
    return count;
  }
  double total() {
    double sum = 0;
    ledger_->read([&](const Ledger::View& view) {
      sum = view.units.empty() || view.units[0]->marks.results().empty()
                ? 0
                : view.units[0]->marks.results()[0].total;
    });
    return sum;
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::string path_ = dir_.path() / "run/mark.sock";
  std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>();
};

TEST_F(MarkServerTest, TakesMessagesOfAUnit) {
  const auto server = make();
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0666U);
  ASSERT_EQ(::stat((dir_.path() / "run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0755U);
  const UniqueFd socket = connect();
  EXPECT_EQ(answer(socket), "ok");
  EXPECT_TRUE(send(socket, "result step 5"));
  EXPECT_TRUE(send(socket, "result step 7\n"));
  EXPECT_TRUE(testing::eventually([&] { return total() == 12; }));
}

TEST_F(MarkServerTest, HasReadEverythingWhenItClosesTheConnection) {
  const auto server = make();
  const UniqueFd socket = connect();
  EXPECT_TRUE(send(socket, "result step 5"));
  EXPECT_TRUE(send(socket, "result step 5"));
  ::shutdown(socket.get(), SHUT_WR);
  EXPECT_EQ(answer(socket), "ok");
  EXPECT_EQ(answer(socket), "");
  EXPECT_DOUBLE_EQ(total(), 10);
}

TEST_F(MarkServerTest, ReadsWhatASenderThatHasGoneSent) {
  const auto server = make();
  for (int i = 0; i < 20; ++i) {
    const UniqueFd socket = connect();
    EXPECT_TRUE(send(socket, "result step 1"));
    EXPECT_TRUE(send(socket, "result step 1"));
  }
  EXPECT_TRUE(testing::eventually([&] { return total() == 40; }));
}

TEST_F(MarkServerTest, CountsMessagesInAnotherForm) {
  const auto server = make();
  const UniqueFd socket = connect();
  EXPECT_TRUE(send(socket, "delete everything"));
  EXPECT_TRUE(send(socket, std::string(5000, 'x')));
  EXPECT_TRUE(send(socket, "result step 1"));
  EXPECT_TRUE(testing::eventually([&] { return total() == 1; }));
  EXPECT_EQ(dropped(Drop::kMalformed), 2U);
}

TEST_F(MarkServerTest, EndsTheRegionsOfAConnectionThatIsAttached) {
  const auto server = make();
  {
    const UniqueFd socket = connect();
    EXPECT_TRUE(send(socket, "attach"));
    EXPECT_TRUE(send(socket, "begin solve"));
  }
  EXPECT_TRUE(testing::eventually([&] {
    bool ended = false;
    ledger_->read([&](const Ledger::View& view) {
      ended = !view.units.empty() && !view.units[0]->marks.regions().empty() &&
              view.units[0]->marks.regions()[0].count == 1;
    });
    return ended;
  }));
}

TEST_F(MarkServerTest, RefusesWhoIsInNoUnit) {
  dir_.write("proc/" + std::to_string(::getpid()) + "/cgroup", "0::/elsewhere\n");
  const auto server = make();
  const UniqueFd socket = connect();
  EXPECT_EQ(answer(socket), "refused no_unit");
  EXPECT_EQ(answer(socket), "");
  EXPECT_TRUE(testing::eventually([&] { return server->refused(Refusal::kNoUnit) == 1; }));
}

TEST_F(MarkServerTest, RefusesMoreConnectionsThanTheLimit) {
  const auto server = make({.unit_connections = 2});
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 2; ++i) {
    sockets.push_back(connect());
    EXPECT_EQ(answer(sockets.back()), "ok");
  }
  EXPECT_EQ(answer(connect()), "refused connections");
  sockets.clear();
  EXPECT_TRUE(testing::eventually([&] { return answer(connect()) == "ok"; }));
}

TEST_F(MarkServerTest, DropsAFloodAndGoesOn) {
  const auto server = make({.unit_messages = 50});
  const UniqueFd socket = connect();
  EXPECT_EQ(answer(socket), "ok");
  int refused = 0;
  while (refused < 1000) {
    refused += send(socket, "result step 1") ? 0 : 1;
  }
  EXPECT_TRUE(testing::eventually([&] { return dropped(Drop::kRate) > 0; }));
  // What is queued is read at the rate of the bucket, and new messages are taken again.
  EXPECT_TRUE(testing::eventually([&] { return send(socket, "fom done 1"); }));
  EXPECT_TRUE(testing::eventually([&] {
    bool done = false;
    ledger_->read([&](const Ledger::View& view) {
      done = !view.units.empty() && !view.units[0]->marks.foms().empty();
    });
    return done || (send(socket, "fom done 1"), false);
  }));
}

TEST_F(MarkServerTest, StopsAcceptingForAWhileWhenTooManyConnect) {
  const auto server = make({.node_connects = 20});
  int answered = 0;
  for (int i = 0; i < 60; ++i) {
    answered += answer(connect()) == "ok" ? 1 : 0;  // waits in the backlog
  }
  EXPECT_EQ(answered, 60);
}

TEST_F(MarkServerTest, ReplacesASocketThatWasLeftBehind) {
  make();
  EXPECT_FALSE(connect().valid());
  const auto server = make();
  EXPECT_TRUE(connect().valid());
}

TEST_F(MarkServerTest, DoesNotTakeTheSocketOfAnotherProcess) {
  const auto first = make();
  const auto second =
      Server::create(path_, PeerFinder({}, {}, clock_), std::make_shared<Ledger>(), clock_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("mark.sock: Address already in use"), std::string::npos)
      << second.error().message;
}

TEST_F(MarkServerTest, RefusesPathsThatCannotBeASocket) {
  for (const std::string& path :
       {std::string("mark.sock"), "/" + std::string(200, 'a'), std::string()}) {
    const auto server =
        Server::create(path, PeerFinder({}, {}, clock_), std::make_shared<Ledger>(), clock_);
    ASSERT_FALSE(server) << path;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(TokenBucketTest, RefillsAtItsRate) {
  TokenBucket bucket(10, 5);
  Clock::SteadyTime now{std::chrono::seconds(1)};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(bucket.take(now));
  }
  EXPECT_FALSE(bucket.take(now));
  now += std::chrono::milliseconds(110);
  EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
  now += std::chrono::hours(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(bucket.take(now));
  }
  EXPECT_FALSE(bucket.take(now));
}

}  // namespace
}  // namespace ceems::exporter::marks
