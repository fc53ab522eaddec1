// Answers that are handed over while they come.
#include <chrono>
#include <latch>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/client/client_test_support.h"

namespace ceems::net {
namespace {

using ceems::testing::kPatience;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

/// The result of stream_from(), with the parts of the body joined.
struct Streamed {
  std::string text;
  int opened = 0;
  Result<ClientResponse> result;
};

Streamed stream_from(const Peer& peer, milliseconds idle_timeout, ClientOptions options = {}) {
  Streamed streamed;
  const StreamTaker taker{.opened = [&streamed] { ++streamed.opened; },
                          .part = [&streamed](std::string_view part) -> Result<> {
                            streamed.text += part;
                            return {};
                          }};
  streamed.result =
      client_with(std::move(options))->stream(peer.url() + "/", {}, idle_timeout, taker);
  return streamed;
}

TEST(ClientStream, HandsPartsOverWithoutLimit) {
  const Peer peer([](const Request&, Response& response) {
    response.next_chunk = [left = 30](std::string& out) mutable {
      out.append(100'000, 'x');
      return --left > 0;
    };
  });
  ClientOptions options;
  options.max_response_bytes = 1000;
  const Streamed streamed = stream_from(peer, kPatience, options);
  ASSERT_TRUE(streamed.result) << streamed.result.error().message;
  EXPECT_EQ(streamed.result->status, 200);
  EXPECT_EQ(streamed.result->body, "");
  EXPECT_EQ(streamed.text.size(), 3'000'000U);
  EXPECT_EQ(streamed.opened, 1);
}

TEST(ClientStream, GivesOtherAnswersAsTheyAre) {
  const Peer peer([](const Request&, Response& response) { plain_text(response, 410, "gone"); });
  const Streamed streamed = stream_from(peer, kPatience);
  ASSERT_TRUE(streamed.result);
  EXPECT_EQ(streamed.result->status, 410);
  EXPECT_EQ(streamed.result->body, "gone\n");
  EXPECT_EQ(streamed.text, "");
  EXPECT_EQ(streamed.opened, 0);
}

TEST(ClientStream, OutlastsTheTimeLimitWhilePartsCome) {
  const Peer peer([](const Request&, Response& response) {
    response.next_chunk = [left = 8](std::string& out) mutable {
      std::this_thread::sleep_for(milliseconds(10));
      out.append("x");
      return --left > 0;
    };
  });
  ClientOptions options;
  options.timeout = milliseconds(20);
  const Streamed streamed = stream_from(peer, kPatience, options);
  ASSERT_TRUE(streamed.result) << streamed.result.error().message;
  EXPECT_EQ(streamed.text, "xxxxxxxx");
}

TEST(ClientStream, EndsWhenNothingComes) {
  std::latch over(1);
  const Peer peer([&over](const Request&, Response& response) {
    response.next_chunk = [&over, left = 2](std::string& out) mutable {
      if (left == 1) {
        over.wait();
      }
      out.append("x");
      return --left > 0;
    };
  });
  const Streamed streamed = stream_from(peer, milliseconds(100));
  over.count_down();
  ASSERT_FALSE(streamed.result);
  EXPECT_EQ(streamed.result.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(streamed.result.error().message, HasSubstr("nothing came for 100 ms"));
}

TEST(ClientStream, EndsWithTheErrorOfItsTaker) {
  const Peer peer([](const Request&, Response& response) {
    response.next_chunk = [](std::string& out) {
      out.append(1000, 'x');
      return true;
    };
  });
  const StreamTaker taker{
      .part = [](std::string_view) -> Result<> { return fail(ErrorCode::kParse, "enough"); }};
  const auto ended = client_with()->stream(peer.url() + "/", {}, kPatience, taker);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kParse);
  EXPECT_THAT(ended.error().message, HasSubstr("enough"));
}

TEST(ClientStream, EndsWhenStopped) {
  const LyingPeer peer("");
  const auto client = client_with();
  const StreamTaker taker{.part = [](std::string_view) -> Result<> { return {}; }};
  std::stop_source stop;
  const std::jthread stopper([&] {
    EXPECT_TRUE(peer.has_client());
    stop.request_stop();
  });
  const auto start = steady_clock::now();
  const auto ended =
      client->stream(peer.url() + "/", {}, std::chrono::minutes(10), taker, stop.get_token());
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(ended.error().message, HasSubstr("cancelled"));
  EXPECT_LT(steady_clock::now() - start, kPatience);
}
}  // namespace
}  // namespace ceems::net
