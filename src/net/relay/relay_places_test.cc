#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/fd.h"
#include "net/relay/fake_resolver.h"
#include "net/relay/relay_fixture.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

using std::chrono::milliseconds;

/// The upstream behind the unix socket with this path.
std::shared_ptr<Upstream> upstream_at(const std::string& path, UpstreamOptions options = {}) {
  options.unix_socket = path;
  auto made = Upstream::create(std::move(options));
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

std::unique_ptr<Server> serve_at(const std::string& path, Handler handler) {
  ServerOptions options;
  options.listen_addresses = {"unix:" + path};
  auto server = Server::create(std::move(options), std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  (*server)->start();
  return *std::move(server);
}

class UnixRelayTest : public RelayTest {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "s") const {
    return (directory_.path() / name).string();
  }

 private:
  ::ceems::testing::TempDir directory_;
};

TEST_F(UnixRelayTest, RequestsPassOnOneKeptConnection) {
  std::atomic<int> requests = 0;
  const auto back = serve_at(path(), [&](const Request& request, Response& response) {
    ++requests;
    echo(request, response);
  });
  const auto other = upstream_at(path());
  EXPECT_EQ(other->address(), path());
  pass_to({other});
  RawConnection client(address());
  for (int i = 0; i < 3; ++i) {
    client.send(fmt::format("POST /p{} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", i));
    const RawAnswer answer = client.answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, fmt::format("POST /p{} backend hi", i));
    EXPECT_EQ(::unlink(path().c_str()), i == 0 ? 0 : -1) << "no other connection can be made";
  }
  EXPECT_EQ(requests, 3);
  ASSERT_TRUE(wait_for_ends(3));
  EXPECT_EQ(ends()[2].upstream, other.get());
  EXPECT_EQ(ends()[2].error, "");
}

TEST_F(UnixRelayTest, ADeadOneIsPassedOverAndFoundAgain) {
  auto back = serve_at(path(), echo);
  const auto other = upstream_at(path());
  const auto good = serve(echo);
  const auto none = upstream_at(path("none"));
  pass_to({none, other, upstream(good->addresses()[0])}, false);
  EXPECT_EQ(raw_get(address(), "/1").status, 200);
  EXPECT_FALSE(none->alive());
  back.reset();
  EXPECT_EQ(raw_get(address(), "/2").body, "GET /2 backend ");
  EXPECT_FALSE(other->alive()) << "the file is gone";
  back = serve_at(path(), echo);
  pass_to({other}, false);
  EXPECT_EQ(raw_get(address(), "/3").body, "GET /3 backend ");
}

TEST_F(UnixRelayTest, WithoutRoomForConnectionsItIsNotTakenForConnected) {
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress place = SocketAddress::of_unix(path());
  ASSERT_TRUE(listener.valid());
  ASSERT_EQ(::bind(listener.get(), place.data(), place.size()), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<UniqueFd> waiting;
  int connected = 0;
  while (connected == 0) {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    connected = ::connect(waiting.back().get(), place.data(), place.size());
  }
  ASSERT_EQ(errno, EAGAIN);
  const auto good = serve(echo);
  const auto full = upstream_at(path(), {.connect_timeout = milliseconds(50)});
  pass_to({full, upstream(good->addresses()[0])}, false);
  EXPECT_EQ(raw_get(address(), "/x").body, "GET /x backend ") << "nothing was sent to the first";
  EXPECT_FALSE(full->alive());
  // As soon as there is room, the request goes there.
  const auto patient = upstream_at(path());
  pass_to({patient}, false);
  RawConnection client(address());
  client.send("GET /y HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string text = "HTTP/1.1 204 No Content\r\n\r\n";
  for (std::size_t i = 0; i < waiting.size(); ++i) {  // the last is the relay's
    const UniqueFd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (i + 1 == waiting.size()) {
      std::array<char, 4096> asked{};
      EXPECT_GT(::recv(taken.get(), asked.data(), asked.size(), 0), 0);
      EXPECT_EQ(::send(taken.get(), text.data(), text.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(text.size()));
    }
  }
  EXPECT_EQ(client.answer().status, 204);
  EXPECT_TRUE(patient->alive());
}

TEST(Upstream, BehindASocketNeedsAPathAndNoTls) {
  EXPECT_FALSE(Upstream::create({.unix_socket = "relative"}));
  EXPECT_FALSE(Upstream::create({.unix_socket = "/" + std::string(107, 'x')}));
  const auto tls = Upstream::create({.unix_socket = "/run/p.sock", .use_tls = true});
  ASSERT_FALSE(tls);
  EXPECT_EQ(tls.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(tls.error().message, "/run/p.sock: TLS is not spoken over a unix socket");
}

/// The addresses that a lookup of the host of `server` gives.
SocketAddresses addresses_of(const Server& server) {
  const std::string address = server.addresses()[0];
  const auto colon = address.rfind(':');
  return *look_up(address.substr(0, colon), address.substr(colon + 1));
}

std::shared_ptr<Upstream> named(const FakeResolver& names,
                                milliseconds patience = milliseconds(30'000)) {
  UpstreamOptions options;
  options.host = "name.invalid";
  options.port = "80";
  options.lookup = names.lookup();
  options.connect_timeout = patience;
  return *Upstream::create(std::move(options));
}

TEST_F(RelayTest, RequestsWaitForOneLookupAndGoOnWithIt) {
  const auto back = serve(echo);
  const FakeResolver names;
  pass_to({named(names)});
  RawConnection first(address());
  RawConnection second(address());
  first.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  second.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  names.wait_for(1);
  names.answer_all(addresses_of(*back));
  EXPECT_EQ(first.answer().body, "GET /1 backend ");
  EXPECT_EQ(second.answer().body, "GET /2 backend ");
  EXPECT_EQ(names.begun(), 1);
}

TEST_F(RelayTest, ANameThatHangsHoldsUpItsOwnRequestsOnlyAndThemForATime) {
  const auto back = serve(echo);
  const FakeResolver names;
  const auto hung = named(names, milliseconds(100));
  pass_to({hung, upstream(back->addresses()[0])}, false);
  EXPECT_EQ(raw_get(address(), "/x").body, "GET /x backend ");
  EXPECT_FALSE(hung->alive());
  pass_to({hung});
  EXPECT_EQ(raw_get(address(), "/").status, 504);
  ASSERT_TRUE(wait_for_ends(2));
  EXPECT_EQ(ends()[1].error, "no address in time");
  EXPECT_EQ(names.begun(), 1) << "one lookup at a time";
  // While a request waits for a lookup, requests to other servers are served, and the client may
  // leave.
  const FakeResolver others;
  const auto slow = named(others);
  pass_to({slow});
  {
    RawConnection client(address());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    others.wait_for(1);
    const FakeResolver quick;
    quick.answer_all(addresses_of(*back));
    const auto found = named(quick);
    const auto front = serve([&](const Request& request, Response& response) {
      response.relay = std::make_shared<Relay>();
      response.relay->attempts.push_back({.upstream = found,
                                          .method = request.method,
                                          .target = request.target,
                                          .host = "backend",
                                          .headers = {}});
    });
    EXPECT_EQ(raw_get(front->addresses()[0], "/y").body, "GET /y backend ");
  }
  ASSERT_TRUE(wait_for_ends(3));
  EXPECT_EQ(ends()[2].error, "the client has left");
  EXPECT_TRUE(slow->alive());
}

TEST_F(RelayTest, ANameThatIsNotFoundSaysWhy) {
  const FakeResolver names;
  names.answer_all(fail(ErrorCode::kUnavailable, "no such name"));
  pass_to({named(names)});
  EXPECT_EQ(raw_get(address(), "/").status, 503);
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "cannot find the address: no such name");
}

TEST_F(RelayTest, KnownAddressesStayInUseWhileANewLookupHangs) {
  const auto back = serve(echo);
  const FakeResolver names;
  const auto other = *Upstream::create(
      {.host = "name.invalid",
       .port = "80",
       .lookup = [found = addresses_of(*back), hang = names.lookup(),
                  first = std::make_shared<std::atomic<bool>>(true)](
                     const std::string& host, const std::string& port) -> Result<SocketAddresses> {
         if (first->exchange(false)) {
           return found;
         }
         return hang(host, port);
       }});
  pass_to({other}, false);
  const auto ask = [&] {
    RawConnection client(address());
    client.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return client.answer().body;
  };
  EXPECT_EQ(ask(), "GET /a backend ");
  EXPECT_TRUE(other->addresses().get(milliseconds(0)).looking);
  front_.reset();  // closes the kept connections, too
  pass_to({other}, false);
  EXPECT_EQ(ask(), "GET /a backend ");
  EXPECT_TRUE(other->addresses().known().looking);
}

}  // namespace
}  // namespace ceems::net
