#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "net/server/request_memory.h"
#include "net/server/server.h"
#include "net/testing/test_client.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

// What a server does for those who send and take too much, too slowly or too often.

namespace ceems::net {
namespace {

using ceems::testing::eventually;
using std::chrono::milliseconds;

std::string get(const std::string& path, const std::string& user) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nUser: {}\r\n\r\n", path, user);
}

std::string user_of(const Request& request) {
  const std::string* const user = find_header(request.headers, "User");
  return user == nullptr ? "" : *user;
}

/// A server with one worker, whose handler remembers the order of requests and waits at "/hold"
/// until it may go on.
class ServerLoad : public ::testing::Test {
 public:
  ~ServerLoad() override {
    release();
    server_.reset();
  }

 protected:
  ServerLoad() {
    options_.listen_addresses = {"127.0.0.1:0"};
    options_.threads = 1;
    for (auto* const time : {&options_.header_timeout, &options_.read_timeout,
                             &options_.write_timeout, &options_.queue_timeout}) {
      *time = ceems::testing::kPatience;
    }
    options_.queue_key = [this](const Request& request) {
      ++queued_;
      return user_of(request);
    };
    options_.brief = [](const Request& request) { return request.path == "/sync"; };
    options_.on_dropped = [this](Dropped what) { ++dropped_.at(static_cast<std::size_t>(what)); };
    options_.give_memory_back = [this] { ++given_back_; };
  }
  void start() {
    auto server = Server::create(options_, [this](const Request& request, Response& response) {
      if (request.path == "/hold") {
        held_ = true;
        hold_.wait();
      }
      if (request.path == "/wait") {
        std::binary_semaphore given_up(0);
        held_ = true;
        const std::stop_callback on_stop(request.given_up, [&given_up] { given_up.release(); });
        given_up.acquire();
      }
      if (request.path != "/sync") {
        const MutexLock lock(mutex_);
        handled_ += request.path + (request.body_missing ? "!" : "") + " ";
      }
      bytes_ += request.body.size();
      response.set_header("Content-Type", "text/plain");
      response.body = request.path == "/large" ? std::string(std::size_t{64} << 20U, 'x') : "done";
    });
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    server_->start();
  }
  void stop(milliseconds grace) { server_->stop(grace); }
  void release() {
    if (!released_.exchange(true)) {
      hold_.count_down();
    }
  }
  [[nodiscard]] std::string address() const { return server_->addresses()[0]; }
  std::unique_ptr<RawConnection> sent(const std::string& text) {
    auto connection = std::make_unique<RawConnection>(address());
    EXPECT_TRUE(connection->send(text));
    return connection;
  }
  /// A connection whose request occupies the worker.
  std::unique_ptr<RawConnection> hold() {
    auto connection = sent(get("/hold", "mallory"));
    EXPECT_TRUE(eventually([this] { return held_.load(); }));
    return connection;
  }
  /// Waits until so many requests have been queued, the one of hold() included.
  void wait_for_queued(int count) {
    EXPECT_TRUE(eventually([&] { return queued_ == count; }));
    // The thread that queues requests also answers this one, so it has queued the last of them.
    EXPECT_EQ(raw_get(address(), "/sync").status, 200);
  }
  [[nodiscard]] int dropped(Dropped what) { return dropped_.at(static_cast<std::size_t>(what)); }
  [[nodiscard]] bool held() const { return held_; }
  [[nodiscard]] std::string handled() {
    const MutexLock lock(mutex_);
    return handled_;
  }

  ServerOptions options_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<int> given_back_ = 0;

 private:
  std::array<std::atomic<int>, 4> dropped_{};
  std::atomic<int> queued_ = 0;
  std::atomic<bool> held_ = false;
  std::atomic<bool> released_ = false;
  std::latch hold_{1};
  Mutex mutex_;
  std::string handled_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<Server> server_;
};

TEST_F(ServerLoad, BriefRequestsNeedNoWorker) {
  options_.brief = [](const Request& request) { return request.path == "/brief"; };
  start();
  const auto held = hold();
  const auto waiting = sent(get("/other", "ann"));
  const auto brief = sent(get("/brief", "mallory"));
  EXPECT_EQ(brief->answer().body, "done");
  EXPECT_EQ(handled(), "/brief ");
  release();
  EXPECT_EQ(waiting->answer().body, "done");
}

TEST_F(ServerLoad, AUserWithManyRequestsDelaysAnotherByOne) {
  start();
  const auto first = hold();
  constexpr int kMany = 30;
  std::vector<std::unique_ptr<RawConnection>> flood;
  flood.reserve(kMany);
  for (int i = 0; i < kMany; ++i) {
    flood.push_back(sent(get("/m", "mallory")));
  }
  wait_for_queued(1 + kMany);
  const auto alice = sent(get("/alice", "alice"));
  wait_for_queued(2 + kMany);
  release();
  EXPECT_EQ(alice->answer().body, "done");
  for (const auto& connection : flood) {
    EXPECT_EQ(connection->answer().body, "done");
  }
  EXPECT_THAT(handled(), ::testing::StartsWith("/hold /m /alice /m "));
}

TEST_F(ServerLoad, UrgentRequestsNeverWait) {
  options_.urgent = [](const Request& request) { return request.path == "/-/healthy"; };
  start();
  const auto first = hold();
  EXPECT_EQ(raw_get(address(), "/-/healthy").body, "done");
  EXPECT_EQ(handled(), "/-/healthy ");
}

TEST_F(ServerLoad, RequestsThatWaitForOthersLeaveTheWorkersFree) {
  options_.waits = [](const Request& request) { return request.path == "/hold"; };
  options_.threads = 3;
  start();
  const auto first = hold();
  std::vector<std::unique_ptr<RawConnection>> more;
  for (int i = 0; i < 8; ++i) {
    more.push_back(sent(get("/hold", "mallory")));
  }
  wait_for_queued(9);
  EXPECT_EQ(raw_get(address(), "/x").body, "done");
  EXPECT_EQ(handled(), "/x ");
  EXPECT_EQ(sent(get("/y", "mallory"))->answer().body, "done");
  release();
  for (const auto& connection : more) {
    EXPECT_EQ(connection->answer().body, "done");
  }
}

TEST_F(ServerLoad, ARequestThatWaitsForOthersEndsWhenItsClientLeaves) {
  options_.waits = [](const Request& request) { return request.path == "/wait"; };
  options_.queue_timeout = milliseconds(100);  // it is watched after that time, too
  start();
  auto leaving = sent(get("/wait", "alice"));
  EXPECT_TRUE(eventually([this] { return held(); }));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(handled(), "");
  leaving.reset();
  EXPECT_TRUE(eventually([this] { return handled() == "/wait "; }));
}

TEST_F(ServerLoad, ARequestThatWaitsForOthersEndsSoonAfterAStop) {
  options_.waits = [](const Request& request) { return request.path == "/wait"; };
  start();
  const auto waiting = sent(get("/wait", "alice"));
  EXPECT_TRUE(eventually([this] { return held(); }));
  const auto begun = std::chrono::steady_clock::now();
  std::jthread stopping([this] { stop(std::chrono::minutes(10)); });
  EXPECT_EQ(waiting->answer().body, "done");
  stopping.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, ceems::testing::kPatience);
}

TEST_F(ServerLoad, ARequestThatWaitsTooLongIsAnswered) {
  options_.queue_timeout = milliseconds(50);
  start();
  const auto first = hold();
  const auto late = sent(get("/late", "alice"));
  const RawAnswer answer = late->answer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_EQ(dropped(Dropped::kLate), 1);
  release();
  EXPECT_EQ(first->answer().body, "done");
  late->send(get("/again", "alice"));
  EXPECT_EQ(late->answer().body, "done");
  EXPECT_EQ(handled(), "/hold /again ");
}

TEST_F(ServerLoad, ARequestWhoseClientLeftIsNotServed) {
  options_.queue_timeout = milliseconds(20'000);
  start();
  const auto first = hold();
  sent(get("/left", "alice")).reset();
  EXPECT_TRUE(eventually([this] { return dropped(Dropped::kGone) == 1; }));
  release();
  EXPECT_EQ(first->answer().body, "done");
  EXPECT_EQ(raw_get(address(), "/next").body, "done");
  EXPECT_EQ(handled(), "/hold /next ");
}

TEST_F(ServerLoad, WhatWaitsInVainDoesNotHoldUpAStop) {
  start();
  const auto first = hold();
  const auto waiting = sent(get("/waiting", "alice"));
  wait_for_queued(2);
  std::jthread stopping([this] { stop(milliseconds(10)); });
  EXPECT_TRUE(eventually([this] { return dropped(Dropped::kGone) == 1; }));
  release();
  stopping.join();
  EXPECT_EQ(handled(), "/hold ");
}

TEST_F(ServerLoad, TheHeaderDecidesBeforeTheBodyIsRead) {
  options_.needs_body = [](const Request& request) { return request.path == "/form"; };
  start();
  const auto refused = sent("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
                            std::string(1000, 'x'));
  const RawAnswer answer = refused->answer();
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_EQ(bytes_, 0U);
  const auto asks =
      sent("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(asks->answer().status, 200) << "and not 100";
  const auto read = sent("POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
  read->send("cd");
  EXPECT_EQ(read->answer().body, "done");
  EXPECT_EQ(bytes_, 4U);
  EXPECT_EQ(handled(), "/no! /no! /form ");
}

TEST_F(ServerLoad, SmallBodiesAreReadWithoutAsking) {
  std::atomic<int> asked = 0;
  options_.small_body_bytes = 10;
  options_.needs_body = [&](const Request&) {
    ++asked;
    return false;
  };
  start();
  const auto small = sent("POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(20));
  small->send("0123456789");
  EXPECT_EQ(small->answer().body, "done");
  for (const char* const size : {"Content-Length: 11", "Transfer-Encoding: chunked"}) {
    const auto large = sent(fmt::format("POST /large! HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n", size));
    EXPECT_EQ(large->answer().body, "done");
  }
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(bytes_, 10U);
}

TEST_F(ServerLoad, PasswordsAreCheckedBeforeTheBodyIsRead) {
  const ceems::testing::TempDir directory;
  const std::string file = (directory.path() / "web.yml").string();
  std::ofstream(file) << "basic_auth_users:\n"
                         "  alice: $2y$04$c2FsdHNhbHRzYWx0c2Fsd.Wz4NnBWm4Tk1yYPC1ecE3o7zXo8bBWi\n";
  options_.web_config_file = file;
  options_.request_memory = std::make_shared<RequestMemory>(std::size_t{64} << 10U);
  start();
  for (const char* const credentials : {"", "Authorization: Basic bWFsbG9yeTp4\r\n"}) {
    const auto refused = sent(fmt::format(
        "POST / HTTP/1.1\r\nHost: x\r\n{}Content-Length: 1000000\r\n\r\n", credentials));
    const RawAnswer answer = refused->answer();
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.header("Connection"), "close");
  }
  EXPECT_EQ(handled(), "");
}

TEST_F(ServerLoad, BodiesOfAllRequestsTogetherAreBounded) {
  constexpr std::size_t kBody = std::size_t{1} << 20U;
  constexpr std::size_t kLimit = 20 * kBody;
  options_.max_body_bytes = kBody;
  options_.request_memory = std::make_shared<RequestMemory>(kLimit);
  options_.read_timeout = std::chrono::minutes(10);  // no body ends before the last has begun
  start();
  std::vector<std::unique_ptr<RawConnection>> clients;
  const std::string most(kBody - 1, 'x');
  for (int i = 0; i < 60; ++i) {
    auto client =
        sent(fmt::format("POST /{} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", i, kBody));
    static_cast<void>(client->send(most));
    EXPECT_LE(options_.request_memory->used(), kLimit);
    clients.push_back(std::move(client));
  }
  EXPECT_TRUE(eventually([this] { return dropped(Dropped::kMemory) > 0; }));
  EXPECT_TRUE(eventually([&clients] {
    return std::ranges::any_of(clients, [](const auto& client) {
      return client->answer(false, milliseconds(20)).status == 503;
    });
  }));
  EXPECT_LE(options_.request_memory->used(), kLimit);
  EXPECT_EQ(given_back_, 0);
  clients.clear();
  EXPECT_TRUE(eventually([this] { return given_back_ == 1; }));
  EXPECT_TRUE(eventually([this] { return options_.request_memory->used() == 0; }));
  EXPECT_EQ(raw_get(address(), "/").status, 200);
}

TEST_F(ServerLoad, MemoryIsGivenBackOnceForTheRequestsOfAWhile) {
  options_.give_back_after = milliseconds(100);
  // A busy machine may delay the requests: then it is tried again with twice the time.
  EXPECT_TRUE(eventually([this] {
    options_.give_back_after *= 2;
    start();
    given_back_ = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(raw_get(address(), "/").status, 200);
    }
    const int early = given_back_;
    const bool in_time = std::chrono::steady_clock::now() - begin < options_.give_back_after;
    EXPECT_TRUE(early == 0 || !in_time);
    return in_time;
  }));
  EXPECT_TRUE(eventually([this] { return given_back_ == 1; }));
  EXPECT_EQ(raw_get(address(), "/").status, 200);
  EXPECT_TRUE(eventually([this] { return given_back_ == 2; }));
}

TEST_F(ServerLoad, AReaderThatTakesNothingIsCutAndCounted) {
  options_.write_timeout = milliseconds(100);
  start();
  const auto reader = sent(get("/large", "alice"));
  EXPECT_TRUE(eventually([this] { return dropped(Dropped::kSlowReader) == 1; }));
  EXPECT_FALSE(reader->answer().complete);
  EXPECT_EQ(raw_get(address(), "/").body, "done");
  EXPECT_EQ(dropped(Dropped::kSlowReader), 1);
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

TEST_F(ServerLoad, ConnectionsLeaveDescriptorsForEverythingElse) {
  rlimit old{};
  ::getrlimit(RLIMIT_NOFILE, &old);
  const rlimit tight{160, old.rlim_max};
  options_.file_share = 4;
  ::setrlimit(RLIMIT_NOFILE, &tight);
  start();
  const std::ptrdiff_t before = open_files();
  std::vector<std::unique_ptr<RawConnection>> clients;
  for (int i = 0; i < 60; ++i) {  // each takes two descriptors of this process, if it is accepted
    clients.push_back(sent("GET / HT"));
  }
  EXPECT_TRUE(eventually([&] { return open_files() >= before + 60 + 160 / 4; }));
  std::vector<UniqueFd> files;
  for (int i = 0; i < 20; ++i) {
    files.emplace_back(::open("/proc/stat", O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(files.back().valid()) << i;
  }
  ::setrlimit(RLIMIT_NOFILE, &old);
}

TEST(Connections, AreBoundedByTheLimitOfOpenFiles) {
  EXPECT_EQ(connections_allowed(10'000, 1024, 4), 256U);
  EXPECT_EQ(connections_allowed(10'000, 65'536, 4), 10'000U);
  EXPECT_EQ(connections_allowed(20'000, 1024, 5), 204U);
  EXPECT_EQ(connections_allowed(10'000, 16, 4), 8U);
  EXPECT_EQ(connections_allowed(4, 16, 4), 4U);
}

}  // namespace
}  // namespace ceems::net
