#include "net/relay/server_addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "net/relay/fake_resolver.h"
#include "testing/eventually.h"

namespace ceems::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

SocketAddress v4(const char* host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9090);
  EXPECT_EQ(::inet_pton(AF_INET, host, &address.sin_addr), 1);
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

/// Waits for lookups to end.
class Ends {
 public:
  explicit Ends(ServerAddresses& addresses)
      : waiting_(addresses, [this] {
          const MutexLock lock(mutex_);
          ++count_;
          changed_.notify_all();
        }) {}
  void wait_for(int count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, ceems::testing::kPatience,
                                  [&]() CEEMS_REQUIRES(mutex_) { return count_ >= count; }));
  }

 private:
  Mutex mutex_;
  Condition changed_;
  int count_ CEEMS_GUARDED_BY(mutex_) = 0;
  ServerAddresses::Waiting waiting_;
};

TEST(ServerAddresses, OfNumbersAndSocketsAreNeverLookedUp) {
  const Lookup never = [](const std::string&, const std::string&) -> Result<SocketAddresses> {
    ADD_FAILURE() << "looked up";
    return SocketAddresses{};
  };
  ServerAddresses numeric("192.0.2.7", "9090", never);
  const auto known = numeric.get(milliseconds(0));
  EXPECT_FALSE(known.looking);
  EXPECT_EQ(*known.list, SocketAddresses{v4("192.0.2.7")});
  ServerAddresses longer("2001:db8::1", "80", never);
  ASSERT_EQ(longer.get(milliseconds(0)).list->size(), 1U);
  EXPECT_EQ(longer.known().list->front().family(), AF_INET6);
  EXPECT_EQ(longer.known().list->front().numeric(), "2001:db8::1");
  EXPECT_EQ(v4("192.0.2.7").numeric(), "192.0.2.7");
  ServerAddresses socket("/run/p.sock");
  ASSERT_EQ(socket.get(milliseconds(0)).list->size(), 1U);
  EXPECT_EQ(socket.known().list->front(), SocketAddress::of_unix("/run/p.sock"));
  EXPECT_EQ(socket.known().list->front().numeric(), "");
  EXPECT_FALSE(socket.known().list->front() == SocketAddress::of_unix("/run/q.sock"));
}

TEST(ServerAddresses, ComeFromOneLookupAtATime) {
  const FakeResolver resolver;
  ServerAddresses addresses("prometheus", "9090", resolver.lookup());
  Ends ends(addresses);
  EXPECT_FALSE(addresses.known().looking) << "nobody has asked";
  EXPECT_TRUE(addresses.get().looking);
  EXPECT_TRUE(addresses.get(milliseconds(0)).list->empty());
  resolver.wait_for(1);
  EXPECT_EQ(resolver.asked(), "prometheus:9090");
  resolver.answer(SocketAddresses{v4("192.0.2.1"), v4("192.0.2.2")});
  ends.wait_for(1);
  const auto known = addresses.get(hours(1));
  EXPECT_FALSE(known.looking);
  EXPECT_EQ(*known.list, (SocketAddresses{v4("192.0.2.1"), v4("192.0.2.2")}));
  EXPECT_EQ(resolver.begun(), 1);
}

TEST(ServerAddresses, StayInUseUntilOthersAreFound) {
  const FakeResolver resolver;
  ServerAddresses addresses("prometheus", "9090", resolver.lookup());
  Ends ends(addresses);
  resolver.answer(SocketAddresses{v4("192.0.2.1")});
  addresses.get();
  ends.wait_for(1);
  // A lookup that hangs keeps the known addresses.
  const auto hanging = addresses.get(milliseconds(0));
  EXPECT_TRUE(hanging.looking);
  EXPECT_EQ(*hanging.list, SocketAddresses{v4("192.0.2.1")});
  resolver.wait_for(2);
  // So does a lookup that fails.
  resolver.answer(fail(ErrorCode::kUnavailable, "no such name"));
  ends.wait_for(2);
  const auto failed = addresses.known();
  EXPECT_FALSE(failed.looking);
  EXPECT_EQ(failed.error, "no such name");
  EXPECT_EQ(*failed.list, SocketAddresses{v4("192.0.2.1")});
  // So does a lookup that finds nothing.
  resolver.answer(SocketAddresses{});
  addresses.get(milliseconds(0));
  ends.wait_for(3);
  EXPECT_EQ(addresses.known().error, "the name has no address");
  EXPECT_EQ(*addresses.known().list, SocketAddresses{v4("192.0.2.1")});
  resolver.answer(SocketAddresses{v4("192.0.2.9")});
  addresses.get(milliseconds(0));
  ends.wait_for(4);
  EXPECT_EQ(addresses.known().error, "");
  EXPECT_EQ(*addresses.known().list, SocketAddresses{v4("192.0.2.9")});
  EXPECT_EQ(resolver.begun(), 4);
}

TEST(ServerAddresses, MayGoWhileALookupHangs) {
  const FakeResolver resolver;
  {
    ServerAddresses addresses("prometheus", "9090", resolver.lookup());
    const ServerAddresses::Waiting waiting(addresses, [] { ADD_FAILURE() << "told too late"; });
    addresses.get();
    resolver.wait_for(1);
  }
  resolver.answer(SocketAddresses{});
  EXPECT_TRUE(resolver.is_left_alone());
}

TEST(ServerAddresses, TheSystemKnowsThisMachineAndNoNonsense) {
  const auto local = look_up("localhost", "9090");
  ASSERT_TRUE(local) << local.error().message;
  EXPECT_FALSE(local->empty());
  EXPECT_FALSE(look_up("127.0.0.1", "no-port"));
  EXPECT_FALSE(look_up("no name at all", "80"));
}

}  // namespace
}  // namespace ceems::net
