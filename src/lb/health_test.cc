#include "lb/health.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "testing/temp_dir.h"

namespace ceems::lb {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Servers = std::vector<std::shared_ptr<net::Upstream>>;

/// A port of the loopback interface that is this test's, whether somebody listens there or not.
class Port {
 public:
  explicit Port(bool listening, int backlog = 16) : backlog_(backlog) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd_ = bind();
    spare_ = bind();
    if (listening) {
      listen();
    }
  }
  void listen() { EXPECT_EQ(::listen(fd_.get(), backlog_), 0); }
  /// Connections are refused from now on.
  void stop() { fd_ = std::move(spare_); }
  [[nodiscard]] std::string number() const { return std::to_string(ntohs(address_.sin_port)); }
  /// A connection that is begun, and nothing more.
  [[nodiscard]] UniqueFd begin() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    static_cast<void>(
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_));
    return fd;
  }

 private:
  UniqueFd bind() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socklen_t size = sizeof address_;
    auto* const raw = reinterpret_cast<sockaddr*>(&address_);
    if (!fd.valid()) {
      ADD_FAILURE() << "no socket";
      return fd;
    }
    EXPECT_EQ(::bind(fd.get(), raw, size), 0);
    EXPECT_EQ(::getsockname(fd.get(), raw, &size), 0);
    return fd;
  }

  UniqueFd fd_;
  UniqueFd spare_;  ///< holds the port when the first is closed
  int backlog_;
  sockaddr_in address_{};
};

std::shared_ptr<net::Upstream> server_at(const std::string& port) {
  return *net::Upstream::create({.host = "127.0.0.1", .port = port});
}

/// Who took a connection.
std::vector<bool> probed(const Servers& servers, milliseconds patience = milliseconds(10'000)) {
  std::vector<int> told(servers.size(), 0);
  std::vector<bool> alive(servers.size(), false);
  probe(servers, patience, {}, [&](std::size_t place, Verdict verdict) {
    ++told[place];
    alive[place] = verdict == Verdict::kTakesConnections;
  });
  EXPECT_EQ(told, std::vector<int>(servers.size(), 1));
  return alive;
}

/// A server whose name is looked up so.
std::shared_ptr<net::Upstream> server_named(net::Lookup lookup) {
  return *net::Upstream::create(
      {.host = "name.invalid", .port = "80", .lookup = std::move(lookup)});
}

/// A name that is not found before the test ends.
class HangingName {
 public:
  HangingName() = default;
  HangingName(const HangingName&) = delete;
  HangingName& operator=(const HangingName&) = delete;
  ~HangingName() { over_->set_value(); }
  [[nodiscard]] net::Lookup lookup() const {
    return [over = over_->get_future().share()](
               const std::string&, const std::string&) -> Result<net::SocketAddresses> {
      over.wait();
      return fail(ErrorCode::kUnavailable, "no such name");
    };
  }

 private:
  std::unique_ptr<std::promise<void>> over_ = std::make_unique<std::promise<void>>();
};

TEST(Probe, TellsWhoTakesConnections) {
  const Port open(true);
  const Port closed(false);
  EXPECT_EQ(probed({server_at(open.number()), server_at(closed.number()), server_at("no-port"),
                    server_at(open.number())}),
            (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(probed({}), std::vector<bool>{});
}

TEST(Probe, TriesAllAddressesOfAName) {
  // Where localhost is ::1 as well, and first, nobody listens there.
  const Port open(true);
  EXPECT_EQ(probed({*net::Upstream::create({.host = "localhost", .port = open.number()})}),
            std::vector<bool>{true});
}

TEST(Probe, DoesNotWaitForServersThatLeaveItWaiting) {
  const Port full(true, 0);
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(full.begin());  // nobody takes them: the queue is full
  }
  const Port open(true);
  EXPECT_EQ(probed({server_at(full.number()), server_at(open.number())}, milliseconds(50)),
            (std::vector<bool>{false, true}));
}

TEST(Probe, TriesUnixSockets) {
  const ceems::testing::TempDir directory;
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  const auto server = [&](const char* name) {
    return *net::Upstream::create({.unix_socket = path(name)});
  };
  const auto listen = [&](const char* name, int backlog) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto place = net::SocketAddress::of_unix(path(name));
    if (!fd.valid()) {
      ADD_FAILURE() << "no socket";
      return fd;
    }
    EXPECT_EQ(::bind(fd.get(), place.data(), place.size()), 0);
    EXPECT_EQ(backlog < 0 ? 0 : ::listen(fd.get(), backlog), 0);
    return fd;
  };
  const UniqueFd open = listen("open", 16);
  const UniqueFd left = listen("left", -1);  // a file that nobody listens at
  const UniqueFd full = listen("full", 0);
  std::vector<UniqueFd> waiting;
  const auto place = net::SocketAddress::of_unix(path("full"));
  do {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (::connect(waiting.back().get(), place.data(), place.size()) == 0);
  const Servers servers = {server("none"), server("left"), server("full"), server("open")};
  EXPECT_EQ(probed(servers, milliseconds(50)), (std::vector<bool>{false, false, false, true}));
  // One without room is asked again until it has some.
  std::jthread taking([&] {
    std::this_thread::sleep_for(milliseconds(30));
    waiting.emplace_back(::accept4(full.get(), nullptr, nullptr, SOCK_CLOEXEC));
  });
  EXPECT_EQ(probed({server("full")}), std::vector<bool>{true});
}

TEST(Probe, AHangingNameHoldsUpItsOwnServerOnly) {
  const Port open(true);
  const HangingName name;
  const auto hung = server_named(name.lookup());
  std::vector<std::pair<std::size_t, bool>> told;
  std::stop_source stop;
  probe({hung, server_at("no-port"), server_at(open.number())}, std::chrono::hours(1),
        stop.get_token(), [&](std::size_t place, Verdict verdict) {
          told.emplace_back(place, verdict == Verdict::kTakesConnections);
          if (told.size() == 2) {
            stop.request_stop();  // ends it: nobody waits for the name then
          }
        });
  std::ranges::sort(told);
  EXPECT_EQ(told, (std::vector<std::pair<std::size_t, bool>>{{1, false}, {2, true}}));
  EXPECT_EQ(probed({hung}, milliseconds(20)), std::vector<bool>{false});
  EXPECT_TRUE(hung->addresses().known().looking);
}

TEST(Probe, AShortageHereSaysNothingOfAServer) {
  const Port open(true);
  const auto server = server_at(open.number());
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlim_t before = std::exchange(files.rlim_cur, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  std::vector<Verdict> told;
  probe({server}, milliseconds(10'000), {},
        [&](std::size_t /*place*/, Verdict verdict) { told.push_back(verdict); });
  files.rlim_cur = before;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(told, std::vector<Verdict>{Verdict::kNotKnown});
  EXPECT_EQ(probed({server}), std::vector<bool>{true});
}

TEST(Probe, TriesOldAddressesAndNewOnes) {
  const Port old(true);
  const Port moved(true);
  const auto at = [](const Port& port) { return *net::look_up("127.0.0.1", port.number()); };
  const HangingName hanging;
  std::vector<net::Lookup> lookups = {
      [&](const auto&, const auto&) { return at(old); },
      [&](const auto&, const auto&) -> Result<net::SocketAddresses> {
        return fail(ErrorCode::kUnavailable, "no such name");
      },
      [&](const auto&, const auto&) { return at(moved); },
      hanging.lookup(),
  };
  const auto server = server_named(
      [lookups = std::move(lookups), next = std::make_shared<std::atomic<std::size_t>>(0)](
          const std::string& host, const std::string& port) {
        return lookups.at((*next)++)(host, port);
      });
  const auto lookup_ended = [&] {
    const auto end = steady_clock::now() + std::chrono::seconds(30);
    while (server->addresses().known().looking && steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  EXPECT_EQ(probed({server}), std::vector<bool>{true});
  EXPECT_EQ(probed({server}), std::vector<bool>{true}) << "the old address when the lookup fails";
  lookup_ended();
  EXPECT_EQ(server->addresses().known().error, "no such name");
  EXPECT_EQ(probed({server}), std::vector<bool>{true});
  lookup_ended();
  EXPECT_EQ(*server->addresses().known().list, at(moved));
  EXPECT_EQ(probed({server}), std::vector<bool>{true}) << "and while it hangs";
}

TEST(Probe, WaitsForTheNewAddressOfAServerThatHasMoved) {
  Port old(true);
  const Port moved(true);
  const auto server =
      server_named([first = *net::look_up("127.0.0.1", old.number()),
                    second = *net::look_up("127.0.0.1", moved.number()),
                    count = std::make_shared<std::atomic<int>>(0)](
                       const std::string&, const std::string&) -> Result<net::SocketAddresses> {
        return (*count)++ == 0 ? first : second;
      });
  EXPECT_EQ(probed({server}), std::vector<bool>{true});
  old.stop();
  EXPECT_EQ(probed({server}), std::vector<bool>{true});
}

/// Watches servers on a thread of its own until it goes.
class Watch {
 public:
  explicit Watch(std::vector<Watched> servers, WatchTimes times = {})
      : servers_(std::move(servers)), thread_([this, times](const std::stop_token& stop) {
          keep_watch(
              stop,
              [this] {
                ++looks_;
                return servers_;
              },
              times);
        }) {}
  [[nodiscard]] int looks() const { return looks_; }
  /// Waits until the servers were looked at so many times more: what was begun before is over.
  void look_again(int times) const {
    const int before = looks_;
    const auto end = steady_clock::now() + std::chrono::seconds(30);
    while (looks_ < before + times && steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_GE(looks_, before + times);
  }

 private:
  std::vector<Watched> servers_;
  std::atomic<int> looks_ = 0;
  std::jthread thread_;
};

constexpr WatchTimes kQuick{.interval = milliseconds(5),
                            .patience = milliseconds(2000),
                            .glance = milliseconds(1),
                            .silence = milliseconds(1)};

bool never_asked() {
  ADD_FAILURE() << "a server that is not silent was asked";
  return true;
}

template <typename Condition>
bool comes_true(Condition condition) {
  const auto end = steady_clock::now() + std::chrono::seconds(30);
  while (!condition() && steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return condition();
}

TEST(KeepWatch, FollowsServersThatGoAndComeBack) {
  Port port(true);
  const auto server = server_at(port.number());
  const Port closed(false);
  const auto dead = server_at(closed.number());
  const Watch watch({{server, never_asked}, {dead, never_asked}}, kQuick);
  EXPECT_TRUE(comes_true([&] { return !dead->alive(); }));
  EXPECT_TRUE(server->alive());
  port.stop();
  EXPECT_TRUE(comes_true([&] { return !server->alive(); }));
  port.listen();
  EXPECT_TRUE(comes_true([&] { return server->alive(); }));
  EXPECT_FALSE(dead->alive());
  EXPECT_FALSE(server->hangs());
}

TEST(KeepWatch, LooksAtOnceAndThenEachInterval) {
  const Port closed(false);
  const auto dead = server_at(closed.number());
  const Watch watch({{dead, never_asked}},
                    {.interval = std::chrono::hours(1), .glance = milliseconds(1)});
  EXPECT_TRUE(comes_true([&] { return !dead->alive(); }));
  dead->set_alive(true);
  watch.look_again(20);
  EXPECT_TRUE(dead->alive()) << "tried before its time";
}

TEST(KeepWatch, WhatARequestFoundGoneIsTriedAtTheNextGlance) {
  const Port port(true);
  const auto server = server_at(port.number());
  const Watch watch({{server, never_asked}},
                    {.interval = std::chrono::hours(1), .glance = milliseconds(20)});
  watch.look_again(1);
  server->set_alive(false);
  EXPECT_TRUE(comes_true([&] { return server->alive(); }));
}

TEST(KeepWatch, AServerThatTakesConnectionsButHangsGetsNoRequestsUntilItAnswers) {
  const Port port(true);
  const auto server = server_at(port.number());
  std::atomic<bool> answers = false;
  const Watch watch({{server, [&] { return answers.load(); }}}, kQuick);
  watch.look_again(20);
  EXPECT_TRUE(server->alive()) << "nobody waits for it";
  {
    const net::Upstream::Flight flight(*server);
    EXPECT_TRUE(comes_true([&] { return server->hangs() && !server->alive(); }));
  }
  // That connections are taken does not bring it back, nor that nobody waits any more.
  watch.look_again(20);
  EXPECT_TRUE(server->hangs());
  EXPECT_FALSE(server->alive());
  answers = true;
  EXPECT_TRUE(comes_true([&] { return !server->hangs() && server->alive(); }));
}

TEST(KeepWatch, ASlowServerThatAnswersTheQuestionStays) {
  const Port port(true);
  const auto server = server_at(port.number());
  std::atomic<int> asked = 0;
  const Watch watch({{server,
                      [&] {
                        ++asked;
                        return true;
                      }}},
                    kQuick);
  const net::Upstream::Flight flight(*server);
  EXPECT_TRUE(comes_true([&] { return asked >= 3; }));
  EXPECT_FALSE(server->hangs());
  EXPECT_TRUE(server->alive());
}

TEST(KeepWatch, AsksOfServersThatHangAllAtTheSameTime) {
  const Port port(true);
  const auto one = server_at(port.number());
  const auto two = server_at(port.number());
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  const auto question = [&] {
    ++inside;
    const bool both = comes_true([&] { return inside >= 2 || met; });
    met = met || both;
    --inside;
    return both;
  };
  const net::Upstream::Flight first(*one);
  const net::Upstream::Flight second(*two);
  std::this_thread::sleep_for(milliseconds(5));  // both are silent at the first look
  const Watch watch({{one, question}, {two, question}}, kQuick);
  EXPECT_TRUE(comes_true([&] { return met.load(); }));
}

TEST(KeepWatch, WhatTakesItsTimeDelaysNoOtherServer) {
  const Port full(true, 0);
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(full.begin());
  }
  Port port(false);
  const auto stuck = server_at(full.number());
  const auto thinking = server_at(full.number());
  const auto gone = server_at(port.number());
  std::atomic<bool> over = false;
  std::atomic<int> asked = 0;
  const net::Upstream::Flight flight(*thinking);
  std::this_thread::sleep_for(milliseconds(5));
  const Watch watch({{stuck, never_asked},
                     {thinking,
                      [&] {
                        ++asked;
                        return comes_true([&] { return over.load(); });
                      }},
                     {gone, never_asked}},
                    {.interval = milliseconds(5),
                     .patience = std::chrono::hours(1),
                     .glance = milliseconds(1),
                     .silence = milliseconds(1)});
  for (int i = 0; i < 2; ++i) {  // as often as a port may stop
    EXPECT_TRUE(comes_true([&] { return !gone->alive(); }));
    port.listen();
    EXPECT_TRUE(comes_true([&] { return gone->alive(); }));
    port.stop();
  }
  EXPECT_EQ(asked, 1) << "again before it had answered";
  over = true;
}

TEST(KeepWatch, LooksAtAllAtOnceWhenAsked) {
  const Port port(true);
  const auto server = server_at(port.number());
  LookNow now;
  std::jthread thread([&](const std::stop_token& stop) {
    keep_watch(
        stop, [&] { return std::vector<Watched>{{server, never_asked}}; },
        {.interval = std::chrono::hours(1), .glance = std::chrono::hours(1)}, &now);
  });
  server->set_alive(false);
  now.ask();
  EXPECT_TRUE(comes_true([&] { return server->alive(); }));
}

TEST(KeepWatch, AServerThatAnswersAgainIsTriedAtOnce) {
  const Port port(true);
  const auto server = server_at(port.number());
  server->set_alive(false);
  server->set_hangs(true);
  server->addresses().get();
  const Watch watch({{server, [] { return true; }}},
                    {.interval = std::chrono::hours(1), .glance = std::chrono::hours(1)});
  EXPECT_TRUE(comes_true([&] { return server->alive() && !server->hangs(); }));
}

TEST(KeepWatch, EndsWhenItIsToldTo) {
  const Port closed(false);
  const auto dead = server_at(closed.number());
  std::atomic<bool> ended = false;
  std::jthread thread([&](const std::stop_token& stop) {
    keep_watch(stop, [&] { return std::vector<Watched>{{dead, never_asked}}; },
               {.interval = std::chrono::hours(1), .glance = std::chrono::hours(1)});
    ended = true;
  });
  EXPECT_TRUE(comes_true([&] { return !dead->alive(); }));
  EXPECT_FALSE(ended);
  thread.request_stop();
  EXPECT_TRUE(comes_true([&] { return ended.load(); }));
}

}  // namespace
}  // namespace ceems::lb
