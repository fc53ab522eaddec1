#include "net/relay/connections.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "net/relay/fake_resolver.h"
#include "net/testing/test_port.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

using ceems::testing::eventually;
using ceems::testing::kPatience;
using std::chrono::milliseconds;
using Servers = std::vector<std::shared_ptr<Upstream>>;
using Found = std::vector<Reachability>;
using enum Reachability;

std::shared_ptr<Upstream> server_at(const std::string& port) {
  return *Upstream::create({.host = "127.0.0.1", .port = port});
}

std::shared_ptr<Upstream> server_named(Lookup lookup) {
  return *Upstream::create({.host = "name.invalid", .port = "80", .lookup = std::move(lookup)});
}

SocketAddress address_of(const TestPort& port) {
  return look_up("127.0.0.1", port.number())->front();
}

/// Probes all servers at the same time. `ended` is called with the index of each server when its
/// result is known.
Found probe_all(
    const Servers& servers,
    milliseconds timeout = kPatience,
    const std::stop_token& stop = {},
    const std::function<void(std::size_t place)>& ended = [](std::size_t /*place*/) {}) {
  asio::io_context io;
  Found found(servers.size(), kUnknown);
  std::size_t ends = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    asio::co_spawn(io.get_executor(), probe(io, *servers[i], timeout, stop),
                   [&, i](const std::exception_ptr& thrown, Reachability reachability) {
                     EXPECT_FALSE(thrown);
                     ++ends;
                     found[i] = reachability;
                     ended(i);
                   });
  }
  io.run();
  EXPECT_EQ(ends, servers.size());
  return found;
}

/// Opens connections that fill the backlog of a port, so that further ones are left waiting.
std::vector<UniqueFd> fill(const TestPort& port) {
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(port.connect());
  }
  return waiting;
}

TEST(Probe, TellsWhoTakesConnections) {
  const TestPort open(true);
  const TestPort closed(false);
  EXPECT_EQ(probe_all({server_at(open.number()), server_at(closed.number()), server_at("no-port"),
                       server_at(open.number())}),
            (Found{kReachable, kUnreachable, kUnreachable, kReachable}));
  EXPECT_EQ(probe_all({}), Found{});
}

TEST(Probe, TriesAllAddressesOfANameAtTheSameTime) {
  const TestPort closed(false);
  const TestPort full(true, 0);
  const TestPort open(true);
  const auto waiting = fill(full);
  const FakeResolver resolver;
  resolver.answer(SocketAddresses{address_of(closed), address_of(full), address_of(open)});
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(probe_all({server_named(resolver.lookup())}, std::chrono::minutes(5)),
            Found{kReachable});
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience);
}

TEST(Probe, DoesNotWaitForServersThatLeaveItWaiting) {
  const TestPort full(true, 0);
  const auto waiting = fill(full);
  const TestPort open(true);
  EXPECT_EQ(probe_all({server_at(full.number()), server_at(open.number())}, milliseconds(300)),
            (Found{kUnreachable, kReachable}));
}

TEST(Probe, TriesUnixSockets) {
  const ceems::testing::TempDir directory;
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  const auto server = [&](const char* name) {
    return *Upstream::create({.unix_socket = path(name)});
  };
  const auto listen = [&](const char* name, int backlog) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = SocketAddress::of_unix(path(name));
    if (!fd.valid()) {
      ADD_FAILURE() << "no socket";
      return fd;
    }
    EXPECT_EQ(::bind(fd.get(), address.data(), address.size()), 0);
    EXPECT_EQ(backlog < 0 ? 0 : ::listen(fd.get(), backlog), 0);
    return fd;
  };
  const UniqueFd open = listen("open", 16);
  const UniqueFd left = listen("left", -1);  // a socket on which nothing listens
  const UniqueFd full = listen("full", 0);
  std::vector<UniqueFd> waiting;
  const auto address = SocketAddress::of_unix(path("full"));
  do {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (::connect(waiting.back().get(), address.data(), address.size()) == 0);
  const Servers servers = {server("none"), server("left"), server("full"), server("open")};
  EXPECT_EQ(probe_all(servers, milliseconds(300)),
            (Found{kUnreachable, kUnreachable, kUnreachable, kReachable}));
  // A full socket is tried again until it has room.
  std::jthread taking([&] {
    std::this_thread::sleep_for(milliseconds(30));
    waiting.emplace_back(::accept4(full.get(), nullptr, nullptr, SOCK_CLOEXEC));
  });
  EXPECT_EQ(probe_all({server("full")}), Found{kReachable});
}

TEST(Probe, AHangingNameHoldsUpItsOwnServerOnly) {
  const TestPort open(true);
  const FakeResolver resolver;
  const auto hung = server_named(resolver.lookup());
  std::vector<std::size_t> ended;
  std::stop_source stop;
  EXPECT_EQ(probe_all({hung, server_at("no-port"), server_at(open.number())}, std::chrono::hours(1),
                      stop.get_token(),
                      [&](std::size_t place) {
                        ended.push_back(place);
                        if (ended.size() == 2) {
                          EXPECT_EQ(std::ranges::count(ended, 0U), 0);
                          stop.request_stop();
                        }
                      }),
            (Found{kUnknown, kUnreachable, kReachable}));
  EXPECT_EQ(probe_all({hung}, milliseconds(20)), Found{kUnreachable});
  EXPECT_TRUE(hung->addresses().known().looking);
}

TEST(Probe, EndsSoonAfterItIsStopped) {
  const FakeResolver resolver;
  const TestPort full(true, 0);
  const auto waiting = fill(full);
  std::stop_source stop;
  std::jthread stopping([&] {
    std::this_thread::sleep_for(milliseconds(20));
    stop.request_stop();
  });
  const Servers servers = {server_named(resolver.lookup()), server_at(full.number())};
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(probe_all(servers, std::chrono::hours(1), stop.get_token()),
            (Found{kUnknown, kUnknown}));
  EXPECT_EQ(probe_all(servers, std::chrono::hours(1), stop.get_token()),
            (Found{kUnknown, kUnknown}))
      << "stopped before it began";
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience);
}

TEST(Probe, LeavesNoDescriptorOpen) {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const TestPort open(true, 256);
  const TestPort full(true, 0);
  const auto waiting = fill(full);
  const Servers servers = {server_at(open.number()), server_at(full.number())};
  const auto before = count();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(probe_all(servers, milliseconds(1))[1], kUnreachable);
  }
  EXPECT_EQ(count(), before);
}

TEST(Probe, AShortageHereSaysNothingOfAServer) {
  const TestPort open(true);
  const auto server = server_at(open.number());
  asio::io_context io;
  const Timer first(io.get_executor());  // opens the descriptors that Asio itself needs
  Reachability found = kReachable;
  asio::co_spawn(
      io.get_executor(), probe(io, *server, std::chrono::seconds(10), {}),
      [&](const std::exception_ptr& /*thrown*/, Reachability answer) { found = answer; });
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlim_t before = std::exchange(files.rlim_cur, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  io.run();
  files.rlim_cur = before;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(found, kUnknown);
  EXPECT_EQ(probe_all({server}), Found{kReachable});
}

TEST(Probe, TriesOldAddressesAndNewOnes) {
  const TestPort old(true);
  const TestPort moved(true);
  const FakeResolver resolver;
  const auto server = server_named(resolver.lookup());
  const auto wait_for_lookup = [&] {
    EXPECT_TRUE(eventually([&] { return !server->addresses().known().looking; }));
  };
  resolver.answer(SocketAddresses{address_of(old)});
  EXPECT_EQ(probe_all({server}), Found{kReachable});
  resolver.answer(fail(ErrorCode::kUnavailable, "no such name"));
  EXPECT_EQ(probe_all({server}), Found{kReachable}) << "at the old address";
  wait_for_lookup();
  EXPECT_EQ(server->addresses().known().error, "no such name");
  resolver.answer(SocketAddresses{address_of(moved)});
  EXPECT_EQ(probe_all({server}), Found{kReachable});
  wait_for_lookup();
  EXPECT_EQ(*server->addresses().known().list, SocketAddresses{address_of(moved)});
  EXPECT_EQ(probe_all({server}), Found{kReachable}) << "while the next lookup hangs";
}

TEST(Probe, WaitsForTheNewAddressOfAServerThatHasMoved) {
  TestPort old(true);
  const TestPort moved(true);
  const FakeResolver resolver;
  const auto server = server_named(resolver.lookup());
  resolver.answer(SocketAddresses{address_of(old)});
  EXPECT_EQ(probe_all({server}), Found{kReachable});
  old.stop();
  std::jthread answering([&] {
    resolver.wait_for(2);
    std::this_thread::sleep_for(milliseconds(20));  // the old address has been refused by then
    resolver.answer(SocketAddresses{address_of(moved)});
  });
  EXPECT_EQ(probe_all({server}), Found{kReachable});
}

TEST(Shortage, IsWhatThisMachineLacks) {
  const auto is_short = [](int error) {
    return is_shortage(ErrorCondition(error, boost::system::system_category()));
  };
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) {
    EXPECT_TRUE(is_short(error)) << error;
  }
  for (const int error : {0, ECONNREFUSED, EADDRNOTAVAIL, ENETUNREACH, ETIMEDOUT}) {
    EXPECT_FALSE(is_short(error)) << error;
  }
}

}  // namespace
}  // namespace ceems::net
