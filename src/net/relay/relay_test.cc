#include "net/relay/relay.h"

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
#include "net/relay/relay_fixture.h"
#include "testing/eventually.h"

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
  options.inline_handler = [&](const Request& request, Response& response) {
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

/// Accepts one connection after another and sends a fixed text on each, whatever the request.
class TextServer {
 public:
  enum After { kKeep, kClose, kReset, kAwaitEnd };

  TextServer(std::string text, After after) : text_(std::move(text)), after_(after) {
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
  /// How many connections the peer has closed; for kAwaitEnd.
  [[nodiscard]] int ended() const { return ended_; }

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
      if (after_ == kReset) {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      }
      if (after_ == kAwaitEnd && ::recv(fd.get(), asked.data(), asked.size(), 0) == 0) {
        ++ended_;
      }
      if (after_ == kKeep) {
        open.push_back(std::move(fd));
      }
    }
  }

  std::string text_;
  After after_;
  UniqueFd listener_;
  unsigned port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> ended_ = 0;
  std::jthread thread_;
};

TEST_F(RelayTest, AFilteredAnswerKeepsNoFieldThatTellsOfItsBytes) {
  filter = [](int, const Headers&) { return std::make_unique<Upper>(); };
  const TextServer back(
      "HTTP/1.1 400 Bad Request\r\nContent-Encoding: gzip\r\nETag: \"a\"\r\nX-A: b\r\n"
      "Content-Length: 3\r\n\r\nabc",
      TextServer::kClose);
  pass_to({upstream(back.address())});
  const RawAnswer answer = raw_get(address(), "/");
  EXPECT_EQ(answer.body, "ABC!");
  EXPECT_EQ(answer.header("Content-Encoding") + answer.header("ETag"), "");
  EXPECT_EQ(answer.header("X-A"), "b");
}

TEST_F(RelayTest, AnAnswerThatBreaksOffBreaksTheClientsToo) {
  const TextServer back("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", TextServer::kClose);
  const auto good = serve(echo);
  pass_to({upstream(back.address()), upstream(good->addresses()[0])});
  const RawAnswer answer = raw_get(address(), "/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.complete);
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "the answer broke off");
}

TEST_F(RelayTest, AServerThatBreaksOffForOneUserStaysAlive) {
  const TextServer back("", TextServer::kClose);
  const auto only = upstream(back.address());
  pass_to({only});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(raw_get(address(), "/alice").status, 503);
    EXPECT_TRUE(only->alive());
  }
  EXPECT_EQ(raw_get(address(), "/bob").status, 503);
  EXPECT_FALSE(only->doubted());
  EXPECT_EQ(raw_get(address(), "/carol").status, 503);
  EXPECT_TRUE(only->doubted()) << "it is not the query of one user";
  EXPECT_TRUE(only->alive()) << "they may all have sent such queries";
  ASSERT_TRUE(wait_for_ends(7));
  EXPECT_EQ(ends()[0].broken, 1U);
  pass_to({only, upstream(back.address())});
  EXPECT_EQ(raw_get(address(), "/dave").status, 503);
  ASSERT_TRUE(wait_for_ends(8));
  EXPECT_EQ(ends()[7].broken, 2U);
  EXPECT_TRUE(only->alive());
}

TEST_F(RelayTest, AServerThatBreaksOffWhereAnotherAnswersIsMarked) {
  const TextServer back("", TextServer::kClose);
  const auto good = serve(echo);
  const auto broken = upstream(back.address());
  const auto live = upstream(good->addresses()[0]);
  pass_to({broken, live});
  EXPECT_EQ(raw_get(address(), "/alice").status, 200);
  EXPECT_FALSE(broken->alive());
  EXPECT_TRUE(live->alive());
}

TEST_F(RelayTest, AnAnswerWithoutLengthIsWholeWhenItsConnectionEndsProperly) {
  const std::string text = "HTTP/1.1 200 OK\r\n\r\nabc";
  const TextServer ends_well(text, TextServer::kClose);
  const TextServer breaks_off(text, TextServer::kReset);
  const TextServer stands_still(text, TextServer::kKeep);
  pass_to({upstream(ends_well.address())});
  EXPECT_TRUE(raw_get(address(), "/").complete);
  pass_to({upstream(breaks_off.address())});
  EXPECT_FALSE(raw_get(address(), "/").complete);
  ASSERT_TRUE(wait_for_ends(2));
  EXPECT_EQ(ends()[1].error, "the answer broke off");
  pass_to({upstream(stands_still.address(), {.idle_timeout = milliseconds(100)})});
  EXPECT_FALSE(raw_get(address(), "/").complete);
  ASSERT_TRUE(wait_for_ends(3));
  EXPECT_EQ(ends()[2].error, "the answer stood still");
}

TEST_F(RelayTest, AnAnswerThatBreaksOffResetsAClientOfHttp10) {
  const TextServer back("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                        TextServer::kClose);
  pass_to({upstream(back.address())});
  const RawConnection client(address());
  client.send("GET / HTTP/1.0\r\n\r\n");
  std::array<char, 4096> some{};
  ssize_t count = 1;
  while (count > 0) {
    count = ::recv(client.fd(), some.data(), some.size(), 0);
  }
  EXPECT_EQ(count, -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(RelayTest, ARefusalBeforeTheWholeRequestIsReadIsTheAnswer) {
  const TextServer back("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig",
                        TextServer::kClose);
  const auto other = upstream(back.address());
  pass_to({other}, false);
  // The rest of a request is read for half a second, in which a busy machine may not send it. Then
  // the connection is reset, and it is tried again.
  EXPECT_TRUE(testing::eventually([this] {
    RawConnection client(address());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n");
    client.send(std::string(8'000'000, 'x'));
    const RawAnswer answer = client.answer();
    return answer.status == 413 && answer.body == "big";
  }));
  EXPECT_TRUE(other->alive());
}

TEST_F(RelayTest, GarbageIsNoAnswer) {
  const TextServer back("what?\r\n\r\n", TextServer::kClose);
  const auto good = serve(echo);
  pass_to({upstream(back.address()), upstream(good->addresses()[0])});
  EXPECT_EQ(raw_get(address(), "/x").body, "GET /x backend ");
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "");
}

TEST_F(RelayTest, WhatMayHaveActedIsNotSentAgain) {
  const TextServer back("", TextServer::kClose);
  const TextServer other("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", TextServer::kClose);
  pass_to({upstream(back.address()), upstream(other.address())}, false);
  EXPECT_EQ(raw_get(address(), "/").status, 503);
  EXPECT_EQ(back.connections(), 1);
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(RelayTest, WhatMustNotBeSentTwiceTakesANewConnection) {
  const TextServer back("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", TextServer::kKeep);
  const auto other = upstream(back.address(), {.answer_timeout = ceems::testing::kPatience});
  pass_to({other}, false);
  for (int i = 1; i <= 3; ++i) {  // no response comes on a used connection
    EXPECT_EQ(raw_get(address(), "/").body, "ok");
    EXPECT_EQ(back.connections(), i);
  }
}

TEST_F(RelayTest, ASilentServerIsGivenUp) {
  const TextServer back("", TextServer::kKeep);
  const auto other = upstream(back.address(), {.answer_timeout = milliseconds(200)});
  pass_to({other});
  EXPECT_EQ(raw_get(address(), "/").status, 504);
  EXPECT_TRUE(other->alive());
  ASSERT_TRUE(wait_for_ends(1));
  EXPECT_EQ(ends()[0].error, "no answer in time");
}

TEST_F(RelayTest, RequestsLeaveAServerThatHangs) {
  const TextServer back("", TextServer::kKeep);
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

TEST_F(RelayTest, KeptConnectionsThatNobodyUsesAreClosed) {
  const TextServer idle("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", TextServer::kAwaitEnd);
  const auto back = serve(echo);
  const auto unused = upstream(idle.address(), {.keep_for = std::chrono::milliseconds(100)});
  const auto used = upstream(back->addresses()[0]);
  std::atomic<bool> to_used = false;
  front_ = serve([&](const Request& request, Response& response) {
    auto relay = std::make_shared<Relay>();
    relay->attempts.push_back({.upstream = to_used ? used : unused,
                               .method = request.method,
                               .target = request.target,
                               .host = "backend",
                               .headers = {}});
    relay->repeatable = true;
    response.relay = std::move(relay);
  });
  EXPECT_EQ(raw_get(address(), "/").status, 200);
  to_used = true;
  EXPECT_TRUE(ceems::testing::eventually([&] {
    EXPECT_EQ(raw_get(address(), "/").status, 200);
    return idle.ended() > 0;
  }));
  EXPECT_EQ(idle.ended(), 1);
}

TEST_F(RelayTest, AClientThatLeavesEndsItsRequestAndHurtsNobody) {
  const TextServer back("", TextServer::kKeep);
  const auto other = upstream(back.address());
  pass_to({other, other});
  {
    RawConnection client(address());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /2");  // stays unread
    EXPECT_TRUE(ceems::testing::eventually([&] { return back.connections() > 0; }));
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
