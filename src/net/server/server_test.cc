#include "net/server/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <latch>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/testing/test_client.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

using ceems::testing::eventually;
using ceems::testing::kPatience;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::StartsWith;

ServerOptions local_options() {
  ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0"};
  for (auto* const time : {&options.header_timeout, &options.read_timeout, &options.write_timeout,
                           &options.idle_timeout}) {
    *time = kPatience;
  }
  return options;
}

void echo(const Request& request, Response& response) {
  response.set_header("Content-Type", "text/plain");
  response.body =
      fmt::format("{} {} {} {}", request.method, request.path, request.query, request.body);
}

std::unique_ptr<Server> started(ServerOptions options, Handler handler = echo) {
  auto server = Server::create(std::move(options), std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  (*server)->start();
  return *std::move(server);
}

TEST(Server, AnswersAGet) {
  const auto server = started(local_options());
  const RawAnswer answer = raw_get(server->addresses()[0], "/a%20b?x=1&y=%20");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "GET /a b x=1&y=%20 ");
  EXPECT_EQ(answer.header("Content-Length"), "19");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_THAT(answer.header("Date"),
              ::testing::MatchesRegex("[A-Z][a-z]+, [0-9]+ [A-Z][a-z]+ 20[0-9]+ ..:..:.. GMT"));
}

TEST(Server, KeepsAConnectionForTheNextRequest) {
  const auto server = started(local_options());
  RawConnection connection(server->addresses()[0]);
  for (int i = 0; i < 5; ++i) {
    connection.send(fmt::format("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", i));
    const RawAnswer answer = connection.answer();
    EXPECT_EQ(answer.body, fmt::format("GET /{}  ", i));
    EXPECT_EQ(answer.header("Connection"), "");
  }
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  const auto server = started(local_options());
  RawConnection connection(server->addresses()[0]);
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += fmt::format("POST /{} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nb{:02}", i, i);
  }
  connection.send(all);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(connection.answer().body, fmt::format("POST /{}  b{:02}", i, i));
  }
}

TEST(Server, ServesHttp10WithoutKeepingTheConnectionUnlessAsked) {
  const auto server = started(local_options());
  RawConnection once(server->addresses()[0]);
  once.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(once.answer().header("Connection"), "close");
  EXPECT_TRUE(once.ended_within(kPatience));
  RawConnection kept(server->addresses()[0]);
  kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.answer().header("Connection"), "keep-alive");
  kept.send("GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_EQ(kept.answer().body, "GET /2  ");
}

TEST(Server, HeadHasTheHeaderOfGetAndNoBody) {
  const auto server = started(local_options());
  RawConnection connection(server->addresses()[0]);
  connection.send("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawAnswer answer = connection.answer(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Length"), "9");
  connection.send("GET /y HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(connection.answer().body, "GET /y  ");
}

TEST(Server, ReadsAChunkedBody) {
  const auto server = started(local_options());
  RawConnection connection(server->addresses()[0]);
  connection.send(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n");
  EXPECT_EQ(connection.answer().body, "POST /  abcdefg");
}

TEST(Server, SendsContinueToAClientThatWaitsForIt) {
  const auto server = started(local_options());
  RawConnection connection(server->addresses()[0]);
  connection.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(connection.answer().status, 100);
  connection.send("ok");
  EXPECT_EQ(connection.answer().body, "PUT /  ok");
}

struct BadRequest {
  std::string text;
  int status;
};
class ServerBadRequest : public ::testing::TestWithParam<BadRequest> {};

TEST_P(ServerBadRequest, IsRefusedWithAClosedConnection) {
  ServerOptions options = local_options();
  options.max_header_bytes = 1024;
  options.max_body_bytes = 1000;
  const auto server = started(options);
  RawConnection connection(server->addresses()[0]);
  connection.send(GetParam().text);
  const RawAnswer answer = connection.answer();
  EXPECT_EQ(answer.status, GetParam().status);
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_THAT(answer.body, StartsWith(std::to_string(GetParam().status)));
  EXPECT_TRUE(connection.ended_within(kPatience));
  EXPECT_EQ(raw_get(server->addresses()[0], "/").status, 200);
}

INSTANTIATE_TEST_SUITE_P(
    Server,
    ServerBadRequest,
    ::testing::Values(
        BadRequest{"\x16\x03\x01\x02garbage\r\n\r\n", 400},
        BadRequest{"GET\r\n\r\n", 400},
        BadRequest{"GET / HTTP/1.1\r\n\r\n", 400},                        // no Host
        BadRequest{"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},  // two Hosts
        BadRequest{"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},          // bad escape
        BadRequest{"GET nopath HTTP/1.1\r\nHost: a\r\n\r\n", 400},        // no slash
        BadRequest{"GET / HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n", 400},
        BadRequest{"GET / HTTP/2.7\r\nHost: a\r\n\r\n", 505},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -4\r\n\r\n", 400},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   400},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                   "Content-Length: 4\r\n\r\n0\r\n\r\n",
                   400},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
                   "0\r\n\r\n",
                   400},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   400},
        BadRequest{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n"
                   "\r\nab",
                   400},
        BadRequest{"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400},  // folded
        BadRequest{"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", 400},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" +
                       std::string(2048, 'x') + "\r\n0\r\n\r\n",
                   413},
        BadRequest{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        BadRequest{"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(3000, 'x') + "\r\n\r\n", 431},
        BadRequest{"GET /" + std::string(3000, 'x') + " HTTP/1.1\r\n", 431}));

TEST(Server, ClosesAConnectionWhoseHeaderComesTooSlowly) {
  ServerOptions options = local_options();
  options.header_timeout = milliseconds(200);
  const auto server = started(options);
  RawConnection connection(server->addresses()[0]);
  connection.send("GET / HTTP/1.1\r\nHost: ");
  // Each byte comes long before the limit, and all of them fit into a header.
  EXPECT_TRUE(eventually([&] {
    connection.send("x");
    return connection.ended_within(milliseconds(20));
  }));
}

TEST(Server, WaitsLongerForTheFirstByteThanForAHeader) {
  ServerOptions options = local_options();
  options.header_timeout = milliseconds(100);
  const auto server = started(options);
  RawConnection connection(server->addresses()[0]);
  EXPECT_FALSE(connection.ended_within(milliseconds(300)));
  connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(connection.answer().status, 200);
}

TEST(Server, ClosesAConnectionOnWhichNothingComes) {
  ServerOptions options = local_options();
  options.idle_timeout = milliseconds(150);
  const auto server = started(options);
  RawConnection connection(server->addresses()[0]);
  EXPECT_TRUE(connection.ended_within(kPatience));
}

TEST(Server, ClosesAConnectionWhoseBodyComesTooSlowly) {
  ServerOptions options = local_options();
  options.read_timeout = milliseconds(200);
  const auto server = started(options);
  RawConnection connection(server->addresses()[0]);
  connection.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(connection.ended_within(kPatience));
}

TEST(Server, ClosesAnIdleConnection) {
  ServerOptions options = local_options();
  options.idle_timeout = milliseconds(150);
  const auto server = started(options);
  RawConnection connection(server->addresses()[0]);
  const auto start = steady_clock::now();
  connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(connection.answer().status, 200);
  EXPECT_TRUE(connection.ended_within(kPatience));
  EXPECT_GE(steady_clock::now() - start, options.idle_timeout);
}

TEST(Server, ClosesAConnectionThatDoesNotTakeItsAnswer) {
  ServerOptions options = local_options();
  options.write_timeout = milliseconds(200);
  std::atomic<bool> released = false;
  const auto server = started(options, [&released](const Request&, Response& response) {
    const std::shared_ptr<void> body(nullptr, [&released](void*) { released = true; });
    response.next_chunk = [body](std::string& out) {
      out.append(1U << 20U, 'x');
      return true;  // never ends
    };
  });
  const RawConnection connection(server->addresses()[0]);
  connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return released.load(); }));
}

TEST(Server, TurnsAnExceptionInto500) {
  const auto server = started(local_options(), [](const Request& request, Response& response) {
    response.set_header("X-Half", "done");
    if (request.path == "/odd") {
      throw 7;  // NOLINT(hicpp-exception-baseclass,misc-throw-by-value-catch-by-reference)
    }
    throw std::runtime_error("secret detail");
  });
  for (const char* path : {"/", "/odd"}) {
    const RawAnswer answer = raw_get(server->addresses()[0], path);
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ(answer.body, "Internal Server Error\n");
    EXPECT_EQ(answer.header("X-Half"), "");
  }
}

TEST(Server, StreamsABodyOfUnknownLengthInChunks) {
  const auto server = started(local_options(), [](const Request&, Response& response) {
    auto left = std::make_shared<int>(1000);
    response.next_chunk = [left](std::string& out) {
      if (*left == 0) {
        return false;
      }
      out.append(1000, static_cast<char>('a' + *left % 26));
      --*left;
      return true;
    };
  });
  const RawAnswer answer = raw_get(server->addresses()[0], "/");
  EXPECT_EQ(answer.header("Transfer-Encoding"), "chunked");
  EXPECT_TRUE(answer.complete);
  ASSERT_EQ(answer.body.size(), 1000000U);
  EXPECT_EQ(answer.body[0], 'a' + 1000 % 26);
  EXPECT_EQ(answer.body.back(), 'b');

  RawConnection old(server->addresses()[0]);
  old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const RawAnswer plain = old.answer();
  EXPECT_EQ(plain.header("Transfer-Encoding"), "");
  EXPECT_EQ(plain.header("Connection"), "close");
  EXPECT_EQ(plain.body, answer.body);
}

TEST(Server, SendsAShortStreamWithItsLength) {
  const auto server = started(local_options(), [](const Request&, Response& response) {
    response.next_chunk = [n = 0](std::string& out) mutable {
      out += "line\n";
      return ++n < 3;
    };
  });
  const RawAnswer answer = raw_get(server->addresses()[0], "/");
  EXPECT_EQ(answer.header("Content-Length"), "15");
  EXPECT_EQ(answer.body, "line\nline\nline\n");
}

TEST(Server, BreaksTheConnectionWhenAStreamFailsMidway) {
  const auto server = started(local_options(), [](const Request&, Response& response) {
    response.next_chunk = [n = 0](std::string& out) mutable {
      if (++n > 3) {
        throw std::runtime_error("source went away");
      }
      out.append(70000, 'x');
      return true;
    };
  });
  RawConnection connection(server->addresses()[0]);
  connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const RawAnswer answer = connection.answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(answer.body.size(), 210000U);
}

TEST(Server, KeepsLineEndsOutOfHeaders) {
  const auto server = started(local_options(), [](const Request&, Response& response) {
    response.set_header("X-Echo", "a\r\nSet-Cookie: b");
    response.set_header("Content-Length", "99999");
  });
  const RawAnswer answer = raw_get(server->addresses()[0], "/");
  EXPECT_EQ(answer.header("X-Echo"), "a  Set-Cookie: b");
  EXPECT_EQ(answer.header("Set-Cookie"), "");
  EXPECT_EQ(answer.header("Content-Length"), "0");
}

TEST(Server, Answers200ParallelConnections) {
  ServerOptions options = local_options();
  options.threads = 4;
  const auto server = started(options);
  std::vector<std::unique_ptr<RawConnection>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(std::make_unique<RawConnection>(server->addresses()[0]));
    ASSERT_TRUE(all.back()->connected());
  }
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i]->send(fmt::format("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", i));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]->answer().body, fmt::format("GET /{}  ", i));
    }
  }
}

TEST(Server, ASlowHandlerDoesNotHoldUpOthers) {
  std::latch release(1);
  const auto server =
      started(local_options(), [&release](const Request& request, Response& response) {
        if (request.path == "/slow") {
          release.wait();
        }
        response.body = "done";
      });
  RawConnection slow(server->addresses()[0]);
  slow.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(raw_get(server->addresses()[0], "/fast").body, "done");
  }
  release.count_down();
  EXPECT_EQ(slow.answer().body, "done");
}

TEST(Server, AcceptsNoMoreThanItsLimitAndGoesOnWhenOneLeaves) {
  ServerOptions options = local_options();
  options.max_connections = 2;
  const auto server = started(options);
  RawConnection first(server->addresses()[0]);
  auto second = std::make_unique<RawConnection>(server->addresses()[0]);
  constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  first.send(kGet);
  second->send(kGet);
  EXPECT_EQ(first.answer().status, 200);
  EXPECT_EQ(second->answer().status, 200);
  RawConnection third(server->addresses()[0]);
  third.send(kGet);
  EXPECT_EQ(third.answer(false, milliseconds(100)).status, 0);
  second.reset();
  EXPECT_EQ(third.answer().status, 200);
}

TEST(Server, WaitsForRoomWithoutUsingTheProcessor) {
  ServerOptions options = local_options();
  options.listen_addresses.emplace_back("127.0.0.1:0");
  options.max_connections = 1;
  const auto server = started(options);
  const RawConnection first(server->addresses()[0]);
  const RawConnection second(server->addresses()[1]);
  const RawConnection third(server->addresses()[0]);
  std::this_thread::sleep_for(milliseconds(50));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 30);
}

TEST(Server, FinishesARequestInFlightBeforeItStops) {
  std::latch begun(1);
  std::latch release(1);
  auto server = started(local_options(), [&](const Request&, Response& response) {
    begun.count_down();
    release.wait();
    response.body = "finished";
  });
  const std::string address = server->addresses()[0];
  RawConnection idle(address);
  RawConnection busy(address);
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  begun.wait();
  std::jthread stopper([&server] { server->stop(kPatience); });
  EXPECT_TRUE(idle.ended_within(kPatience));
  EXPECT_FALSE(RawConnection(address).connected());
  release.count_down();
  const RawAnswer answer = busy.answer();
  EXPECT_EQ(answer.body, "finished");
  EXPECT_EQ(answer.header("Connection"), "close");
  stopper.join();
  EXPECT_TRUE(busy.ended_within(kPatience));
}

TEST(Server, CutsWhatIsLeftAtTheEndOfTheGraceTime) {
  ServerOptions options = local_options();
  options.header_timeout = std::chrono::minutes(10);
  auto server = started(options);
  RawConnection half(server->addresses()[0]);
  half.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost:");
  EXPECT_EQ(half.answer().status, 200);
  const auto start = steady_clock::now();
  server->stop(milliseconds(100));
  EXPECT_LT(steady_clock::now() - start, kPatience);
  EXPECT_TRUE(half.ended_within(kPatience));
}

TEST(Server, StopsWithoutHavingBeenStarted) {
  auto server = Server::create(local_options(), echo);
  ASSERT_TRUE(server);
  (*server)->stop();
}

TEST(Server, NamesTheHolderOfAPortInUse) {
  const auto server = started(local_options());
  ServerOptions options;
  options.listen_addresses = {server->addresses()[0]};
  const auto second = Server::create(options, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(second.error().message,
            fmt::format("listen {}: address already in use by process {} (net_server_test)",
                        server->addresses()[0], ::getpid()));
}

TEST(Server, ListensOnSeveralAddresses) {
  const ceems::testing::TempDir directory;
  const std::string path = (directory.path() / "s.sock").string();
  ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0", "[127.0.0.1]:0", "unix:" + path, ":0", "localhost:0"};
  {
    const auto server = started(options, [](const Request& request, Response& response) {
      response.body = request.remote_address;
    });
    const auto addresses = server->addresses();
    ASSERT_EQ(addresses.size(), 5U);
    EXPECT_EQ(raw_get(addresses[0], "/").body, "127.0.0.1");
    EXPECT_EQ(raw_get(addresses[1], "/").body, "127.0.0.1");
    EXPECT_EQ(addresses[2], "unix:" + path);
    EXPECT_EQ(raw_get(addresses[2], "/").body, "unix");
    const std::string port = addresses[3].substr(addresses[3].rfind(':'));
    EXPECT_EQ(raw_get("127.0.0.1" + port, "/").body, "127.0.0.1");  // on a dual-stack socket
    EXPECT_EQ(raw_get(addresses[4], "/").status, 200);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Server, SaysWhichAddressIsWrong) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"localhost", "listen address 'localhost': the port is missing"},
           {"127.0.0.1:99999",
            "listen address '127.0.0.1:99999': expected a port from 0 to 65535, got '99999'"}}) {
    ServerOptions options;
    options.listen_addresses = {text};
    const auto server = Server::create(options, echo);
    ASSERT_FALSE(server);
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(server.error().message, message);
  }
  EXPECT_FALSE(Server::create({}, echo));
}

TEST(Server, GoesOnAfterItRanOutOfDescriptors) {
  const auto server = started(local_options());
  rlimit old{};
  ::getrlimit(RLIMIT_NOFILE, &old);
  std::vector<std::unique_ptr<RawConnection>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<RawConnection>(server->addresses()[0]));
    held.back()->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(held.back()->answer().status, 200);
  }
  RawConnection waiting(server->addresses()[0]);
  const rlimit tight{static_cast<rlim_t>(waiting.fd()), old.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &tight);
  waiting.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawAnswer while_short = waiting.answer(false, milliseconds(50));
  ::setrlimit(RLIMIT_NOFILE, &old);
  if (while_short.status == 0) {
    EXPECT_EQ(waiting.answer().status, 200);
  }
  EXPECT_EQ(raw_get(server->addresses()[0], "/").status, 200);
}

}  // namespace
}  // namespace ceems::net
