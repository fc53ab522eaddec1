#include "lb/health.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "net/testing/test_port.h"
#include "testing/eventually.h"

namespace ceems::lb {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::eventually;

std::shared_ptr<net::Upstream> server_at(const std::string& port) {
  return *net::Upstream::create({.host = "127.0.0.1", .port = port});
}

/// Counts how often the targets were looked at.
class Checking {
 public:
  explicit Checking(std::vector<HealthTarget> targets, const HealthTimes& times = {})
      : targets_(std::move(targets)),
        checker_(
            [this] {
              ++looks_;
              return targets_;
            },
            times) {}
  void check_now() { checker_.check_now(); }
  void wait_for_first_look() const {
    ASSERT_TRUE(eventually([this] { return looks_ >= 1; }));
  }
  /// Waits until the targets were looked at so many times more: what was begun before is over.
  void wait_for_looks(int times) const {
    const int before = looks_;
    ASSERT_TRUE(eventually([&] { return looks_ >= before + times; }));
  }

 private:
  std::vector<HealthTarget> targets_;
  std::atomic<int> looks_ = 0;
  HealthChecker checker_;
};

constexpr HealthTimes kQuick{.interval = milliseconds(5),
                             .probe_timeout = milliseconds(2000),
                             .retry_interval = milliseconds(1),
                             .silence = milliseconds(1)};
constexpr std::chrono::hours kNever{1};
/// Connections of probes are not accepted, so each takes a place: as many as the kernel allows.
constexpr int kPlaces = 4096;

bool never_asked() {
  ADD_FAILURE() << "a server that is not silent was asked";
  return true;
}

/// Connections that fill the backlog, so that others are left waiting.
std::vector<UniqueFd> fill(const net::TestPort& port) {
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(port.connect());
  }
  return waiting;
}

TEST(HealthChecker, FollowsServersThatGoAndComeBack) {
  net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  const net::TestPort closed(false);
  const auto dead = server_at(closed.number());
  const Checking checking({{server, never_asked}, {dead, never_asked}}, kQuick);
  EXPECT_TRUE(eventually([&] { return !dead->alive(); }));
  EXPECT_TRUE(server->alive());
  port.stop();
  EXPECT_TRUE(eventually([&] { return !server->alive(); }));
  port.listen();
  EXPECT_TRUE(eventually([&] { return server->alive(); }));
  EXPECT_FALSE(dead->alive());
  EXPECT_FALSE(server->hangs());
}

TEST(HealthChecker, ProbesAtOnceAndThenOncePerInterval) {
  const net::TestPort closed(false);
  const auto dead = server_at(closed.number());
  const Checking checking({{dead, never_asked}},
                          {.interval = kNever, .retry_interval = milliseconds(1)});
  EXPECT_TRUE(eventually([&] { return !dead->alive(); }));
  dead->set_alive(true);
  checking.wait_for_looks(20);
  EXPECT_TRUE(dead->alive()) << "tried before its time";
}

TEST(HealthChecker, WhatARequestFoundGoneIsProbedAtTheNextRetry) {
  const net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  const Checking checking({{server, never_asked}},
                          {.interval = kNever, .retry_interval = milliseconds(20)});
  checking.wait_for_looks(1);
  server->set_alive(false);
  EXPECT_TRUE(eventually([&] { return server->alive(); }));
}

TEST(HealthChecker, AServerThatTakesConnectionsButHangsGetsNoRequestsUntilItAnswers) {
  const net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  std::atomic<bool> answers = false;
  const Checking checking({{server, [&] { return answers.load(); }}}, kQuick);
  checking.wait_for_looks(20);
  EXPECT_TRUE(server->alive()) << "nobody waits for it";
  {
    const net::Upstream::Flight flight(*server);
    EXPECT_TRUE(eventually([&] { return server->hangs() && !server->alive(); }));
  }
  // It comes back neither when connections are taken nor when no request waits any more.
  checking.wait_for_looks(20);
  EXPECT_TRUE(server->hangs());
  EXPECT_FALSE(server->alive());
  answers = true;
  EXPECT_TRUE(eventually([&] { return !server->hangs() && server->alive(); }));
}

TEST(HealthChecker, AServerThatIsDoubtedIsAskedOnce) {
  const net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  std::atomic<bool> answers = true;
  std::atomic<int> asked = 0;
  const Checking checking({{server,
                            [&] {
                              ++asked;
                              return answers.load();
                            }}},
                          {.interval = kNever, .retry_interval = milliseconds(1)});
  const auto doubt_for_three = [&] {
    for (const char* const user : {"alice", "bob", "carol"}) {
      EXPECT_FALSE(server->doubted());
      server->broke_off(user);
    }
  };
  doubt_for_three();
  EXPECT_TRUE(eventually([&] { return asked == 1 && !server->doubted(); }));
  checking.wait_for_looks(20);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(server->alive()) << "it was those requests";
  answers = false;
  server->set_doubted(true);
  EXPECT_TRUE(eventually([&] { return asked == 2 && server->alive() && !server->doubted(); }))
      << "it takes connections, so the next requests decide";
  EXPECT_FALSE(server->hangs());
}

TEST(HealthChecker, ASlowServerThatRespondsStays) {
  const net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  std::atomic<int> asked = 0;
  const Checking checking({{server,
                            [&] {
                              ++asked;
                              return true;
                            }}},
                          kQuick);
  const net::Upstream::Flight flight(*server);
  EXPECT_TRUE(eventually([&] { return asked >= 3; }));
  EXPECT_FALSE(server->hangs());
  EXPECT_TRUE(server->alive());
}

TEST(HealthChecker, AsksAllServersThatHangAtTheSameTime) {
  const net::TestPort port(true, kPlaces);
  const auto one = server_at(port.number());
  const auto two = server_at(port.number());
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  const auto question = [&] {
    ++inside;
    const bool both = eventually([&] { return inside >= 2 || met; });
    met = met || both;
    --inside;
    return both;
  };
  const net::Upstream::Flight first(*one);
  const net::Upstream::Flight second(*two);
  std::this_thread::sleep_for(milliseconds(5));  // both are silent at the first look
  const Checking checking({{one, question}, {two, question}}, kQuick);
  EXPECT_TRUE(eventually([&] { return met.load(); }));
}

TEST(HealthChecker, WhatTakesItsTimeDelaysNoOtherServer) {
  const net::TestPort full(true, 0);
  const auto waiting = fill(full);
  net::TestPort port(false);
  const auto stuck = server_at(full.number());
  const auto thinking = server_at(full.number());
  const auto gone = server_at(port.number());
  std::atomic<bool> over = false;
  std::atomic<int> asked = 0;
  const net::Upstream::Flight flight(*thinking);
  std::this_thread::sleep_for(milliseconds(5));
  const Checking checking({{stuck, never_asked},
                           {thinking,
                            [&] {
                              ++asked;
                              return eventually([&] { return over.load(); });
                            }},
                           {gone, never_asked}},
                          {.interval = milliseconds(5),
                           .probe_timeout = kNever,
                           .retry_interval = milliseconds(1),
                           .silence = milliseconds(1)});
  EXPECT_TRUE(eventually([&] { return asked.load() > 0; }));
  for (int i = 0; i < 2; ++i) {  // as often as a port may stop
    EXPECT_TRUE(eventually([&] { return !gone->alive(); }));
    port.listen();
    EXPECT_TRUE(eventually([&] { return gone->alive(); }));
    port.stop();
  }
  EXPECT_EQ(asked, 1) << "again before it had answered";
  over = true;
}

TEST(HealthChecker, ChecksAllAtOnceWhenAsked) {
  const net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  Checking checking({{server, never_asked}}, {.interval = kNever, .retry_interval = kNever});
  checking.wait_for_first_look();
  server->set_alive(false);
  checking.check_now();
  EXPECT_TRUE(eventually([&] { return server->alive(); }));
}

TEST(HealthChecker, AServerThatAnswersAgainIsProbedAtOnce) {
  const net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  server->set_alive(false);
  server->set_hangs(true);
  const Checking checking({{server, [] { return true; }}},
                          {.interval = kNever, .retry_interval = kNever});
  EXPECT_TRUE(eventually([&] { return server->alive() && !server->hangs(); }));
}

TEST(HealthChecker, AFailureThatBeganBeforeTheServerWasBackSaysNothing) {
  net::TestPort port(true, 0);
  const auto waiting = fill(port);
  const auto server = server_at(port.number());
  ::testing::internal::CaptureStderr();
  {
    // The kernel tries the first connection again after a second, which is too late.
    const Checking checking({{server, never_asked}}, {.interval = kNever,
                                                      .probe_timeout = milliseconds(500),
                                                      .retry_interval = milliseconds(20)});
    checking.wait_for_looks(1);
    server->set_alive(false);  // by a request
    port.listen(256);
    EXPECT_TRUE(eventually([&] { return server->alive(); }));
    checking.wait_for_looks(40);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("a backend can be reached again"), std::string::npos) << log;
  EXPECT_EQ(log.find("cannot reach a backend"), std::string::npos) << log;
}

TEST(HealthChecker, ProbesEndWhenItStops) {
  const net::TestPort full(true, 0);
  const auto waiting = fill(full);
  const auto stuck = server_at(full.number());
  const auto before = steady_clock::now();
  {
    const Checking checking(
        {{stuck, never_asked}},
        {.interval = kNever, .probe_timeout = kNever, .retry_interval = milliseconds(1)});
    checking.wait_for_looks(3);
  }
  EXPECT_LT(steady_clock::now() - before, testing::kPatience);
  EXPECT_TRUE(stuck->alive()) << "nothing is decided then";
}

TEST(HealthChecker, RequestsAreWaitedForWhenItStops) {
  const net::TestPort port(true, kPlaces);
  const auto server = server_at(port.number());
  const net::Upstream::Flight flight(*server);
  std::atomic<bool> asked = false;
  std::atomic<bool> over = false;
  {
    const Checking checking({{server,
                              [&] {
                                asked = true;
                                std::this_thread::sleep_for(milliseconds(50));
                                over = true;
                                return true;
                              }}},
                            kQuick);
    EXPECT_TRUE(eventually([&] { return asked.load(); }));
  }
  EXPECT_TRUE(over);
}

}  // namespace
}  // namespace ceems::lb
