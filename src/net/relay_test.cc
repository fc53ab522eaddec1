#include "net/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "net/relay_fixture.h"

namespace ceems::net {
namespace {

using std::chrono::milliseconds;

TEST_F(RelayTest, RequestsAndAnswersPass) {
  const auto back = serve(echo);
  pass_to({upstream(back->addresses()[0])});
  RawConnection client(address());
  for (int i = 0; i < 3; ++i) {
    client.send(fmt::format("POST /p?q={} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", i));
    const RawAnswer answer = client.answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, fmt::format("POST /p?q={} backend hi", i));
    EXPECT_EQ(answer.header("X-Back"), "yes");
    EXPECT_EQ(answer.header("Content-Length"), std::to_string(answer.body.size()));
  }
  ASSERT_TRUE(wait_for_ends(3));
  EXPECT_EQ(ends()[2].status, 200);
  EXPECT_EQ(ends()[2].error, "");
  EXPECT_EQ(ends()[2].body_bytes, 22U);
}

TEST_F(RelayTest, WhatIsPassedOnAtOnceNeedsNoWorker) {
  const auto back = serve(echo);
  const auto other = upstream(back->addresses()[0]);
  ServerOptions options;
  options.at_once = [&](const Request& request, Response& response) {
    response.body = "nobody shall see this";
    if (request.path == "/throws") {
      throw std::runtime_error("no");
    }
    if (request.path == "/slow") {
      return false;
    }
    if (request.path != "/no-relay") {
      response.relay = std::make_shared<Relay>();
      response.relay->attempts.push_back({.upstream = other,
                                          .method = request.method,
                                          .target = request.target,
                                          .host = "backend",
                                          .headers = {}});
    }
    return true;
  };
  const auto front =
      serve([](const Request& request,
               Response& response) { plain_text(response, 200, "worker " + request.path); },
            std::move(options));
  RawConnection client(front->addresses()[0]);
  const auto body = [&](const std::string& path) {
    client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    return client.answer().body;
  };
  EXPECT_EQ(body("/a"), "GET /a backend ");
  EXPECT_EQ(body("/slow"), "worker /slow\n");
  EXPECT_EQ(body("/throws"), "worker /throws\n");
  EXPECT_EQ(body("/no-relay"), "worker /no-relay\n");
  EXPECT_EQ(body("/b"), "GET /b backend ");
}

TEST_F(RelayTest, AnswersToHeadHaveTheLengthOfGet) {
  const auto back = serve(echo);
  pass_to({upstream(back->addresses()[0])});
  RawConnection client(address());
  client.send("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawAnswer answer = client.answer(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Length"), "18");
  client.send("GET /d HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.answer().body, "GET /d backend ");
}

TEST_F(RelayTest, LongAnswersStream) {
  constexpr std::size_t kPieces = 400;
  const std::string piece(100'000, 'x');
  const auto back = serve([&](const Request&, Response& response) {
    response.next_chunk = [&piece, left = kPieces](std::string& out) mutable {
      out += piece;
      return --left > 0;
    };
  });
  pass_to({upstream(back->addresses()[0])});
  const RawAnswer answer = raw_get(address(), "/");
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.body.size(), kPieces * piece.size());
}

TEST_F(RelayTest, ADeadServerIsPassedOverAndMarked) {
  const auto back = serve(echo);
  std::string gone;
  {
    const auto other = serve(echo);
    gone = other->addresses()[0];
  }
  const auto dead = upstream(gone);
  const auto live = upstream(back->addresses()[0]);
  pass_to({dead, live}, false);
  EXPECT_EQ(raw_get(address(), "/x").body, "GET /x backend ");
  EXPECT_FALSE(dead->alive());
  EXPECT_TRUE(live->alive());
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(live->in_flight(), 0);
}

TEST_F(RelayTest, WithoutAnyServerTheAnswerIsTheGivenOne) {
  std::string gone;
  {
    const auto other = serve(echo);
    gone = other->addresses()[0];
  }
  pass_to({upstream(gone)});
  const RawAnswer answer = raw_get(address(), "/");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "nobody there");
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].upstream, nullptr);
  EXPECT_NE(ends()[0].error, "");
}

TEST_F(RelayTest, KeptConnectionsThatWereClosedAreNotTakenForDeadServers) {
  auto back = serve(echo);
  const std::string where = back->addresses()[0];
  const auto other = upstream(where);
  pass_to({other});
  EXPECT_EQ(raw_get(address(), "/1").status, 200);
  back.reset();
  ServerOptions options;
  options.listen_addresses = {where};
  auto again = Server::create(std::move(options), echo);
  ASSERT_TRUE(again);
  (*again)->start();
  EXPECT_EQ(raw_get(address(), "/2").body, "GET /2 backend ");
  EXPECT_TRUE(other->alive());
}

class Upper final : public BodyFilter {
 public:
  Result<> feed(std::string_view piece, std::string& out) override {
    for (const char byte : piece) {
      out += byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 32) : byte;
    }
    return {};
  }
  Result<> finish(std::string& out) override {
    out += "!";
    return {};
  }
};

class Refusing final : public BodyFilter {
 public:
  Result<> feed(std::string_view /*piece*/, std::string& /*out*/) override {
    return fail(ErrorCode::kParse, "not understood");
  }
  Result<> finish(std::string& /*out*/) override { return {}; }
};

TEST_F(RelayTest, BodiesAreFiltered) {
  filter = [](int, const Headers&) { return std::make_unique<Upper>(); };
  const auto back = serve(echo);
  const auto other = upstream(back->addresses()[0]);
  pass_to({other});
  RawConnection client(address());
  for (int i = 0; i < 2; ++i) {
    client.send("GET /abc HTTP/1.1\r\nHost: x\r\n\r\n");
    const RawAnswer answer = client.answer();
    EXPECT_TRUE(answer.complete);
    EXPECT_EQ(answer.body, "GET /ABC BACKEND !");
  }
  client.send("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawAnswer head = client.answer(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), "");
  EXPECT_TRUE(other->alive());
}

TEST_F(RelayTest, AnAnswerThatCannotBeFilteredIs502AndNobodysDeath) {
  filter = [](int, const Headers&) { return std::make_unique<Refusing>(); };
  const auto back = serve(echo);
  const auto other = upstream(back->addresses()[0]);
  pass_to({other});
  EXPECT_EQ(raw_get(address(), "/").status, 502);
  EXPECT_TRUE(other->alive());
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "not understood");
}

/// A server of one connection after another that says what it is told, whatever it is asked.
class TextServer {
 public:
  TextServer(std::string text, bool close_after) : text_(std::move(text)), close_(close_after) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    socklen_t size = sizeof any;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &size);
    port_ = ntohs(any.sin_port);
    thread_ = std::jthread([this] { run(); });
  }
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;
  ~TextServer() { ::shutdown(listener_.get(), SHUT_RDWR); }

  [[nodiscard]] std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void run() {
    std::vector<UniqueFd> open;
    while (true) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.valid()) {
        return;
      }
      ++connections_;
      std::array<char, 65536> asked{};
      (void)::recv(fd.get(), asked.data(), asked.size(), 0);
      (void)::send(fd.get(), text_.data(), text_.size(), MSG_NOSIGNAL);
      if (!close_) {
        open.push_back(std::move(fd));
      }
    }
  }

  std::string text_;
  bool close_;
  UniqueFd listener_;
  unsigned port_ = 0;
  std::atomic<int> connections_ = 0;
  std::jthread thread_;
};

TEST_F(RelayTest, AnAnswerThatBreaksOffBreaksTheClientsToo) {
  const TextServer back("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true);
  const auto good = serve(echo);
  pass_to({upstream(back.address()), upstream(good->addresses()[0])});
  const RawAnswer answer = raw_get(address(), "/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.complete);
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "the answer broke off");
}

TEST_F(RelayTest, GarbageIsNoAnswer) {
  const TextServer back("what?\r\n\r\n", true);
  const auto good = serve(echo);
  pass_to({upstream(back.address()), upstream(good->addresses()[0])});
  EXPECT_EQ(raw_get(address(), "/x").body, "GET /x backend ");
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "");
}

TEST_F(RelayTest, WhatMayHaveActedIsNotSentAgain) {
  const TextServer back("", true);
  const TextServer other("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true);
  pass_to({upstream(back.address()), upstream(other.address())}, false);
  EXPECT_EQ(raw_get(address(), "/").status, 503);
  EXPECT_EQ(back.connections(), 1);
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(RelayTest, WhatMustNotBeSentTwiceTakesANewConnection) {
  const TextServer back("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  const auto other = upstream(back.address(), {.answer_timeout = milliseconds(2000)});
  pass_to({other}, false);
  for (int i = 1; i <= 3; ++i) {  // nobody answers on a connection that was used
    EXPECT_EQ(raw_get(address(), "/").body, "ok");
    EXPECT_EQ(back.connections(), i);
  }
}

TEST_F(RelayTest, ASilentServerIsGivenUp) {
  const TextServer back("", false);
  const auto other = upstream(back.address(), {.answer_timeout = milliseconds(200)});
  pass_to({other});
  EXPECT_EQ(raw_get(address(), "/").status, 504);
  EXPECT_TRUE(other->alive());
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "no answer in time");
}

TEST_F(RelayTest, RequestsLeaveAServerThatHangs) {
  const TextServer back("", false);
  const auto good = serve(echo);
  const auto hung = upstream(back.address());
  pass_to({hung, upstream(good->addresses()[0])});
  hung->set_hangs(true);
  EXPECT_EQ(raw_get(address(), "/x").body, "GET /x backend ");
  EXPECT_FALSE(hung->alive());
  EXPECT_EQ(hung->silence(), milliseconds(0));
}

TEST_F(RelayTest, KeptConnectionsEndWithTheServerAndNotAfterIt) {
  const auto back = serve(echo);
  const auto other = upstream(back->addresses()[0]);
  pass_to({other});
  EXPECT_EQ(raw_get(address(), "/1").status, 200);
  front_.reset();
  pass_to({other});
  EXPECT_EQ(raw_get(address(), "/2").status, 200);
}

TEST_F(RelayTest, AClientThatLeavesEndsItsRequestAndHurtsNobody) {
  const TextServer back("", false);
  const auto other = upstream(back.address());
  pass_to({other, other});
  {
    RawConnection client(address());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 200 && back.connections() == 0; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "the client has left");
  EXPECT_TRUE(other->alive());
  EXPECT_EQ(back.connections(), 1);
}

TEST_F(RelayTest, HopFieldsStayOnTheirHop) {
  const Headers kept = without_hop_fields({{"Connection", "x-a, close"},
                                           {"X-A", "1"},
                                           {"X-B", "2"},
                                           {"Transfer-Encoding", "chunked"},
                                           {"Upgrade", "websocket"},
                                           {"TE", "trailers"}});
  EXPECT_EQ(kept, (Headers{{"X-B", "2"}}));
}

}  // namespace
}  // namespace ceems::net
