#include "tsdb/breaker.h"

#include <stop_token>

#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::tsdb {
namespace {

class Breaker : public ::testing::Test {
 protected:
  bool ask() { return transport_->get("http://t/x").has_value(); }

  ceems::testing::FakeClock clock_;
  int asked_ = 0;
  Result<net::ClientResponse> answer_ = fail(ErrorCode::kTimeout, "timed out");
  std::unique_ptr<Transport> transport_ =
      with_breaker(std::make_unique<FakeTransport>([this](const FakeTransport::Request&) {
                     ++asked_;
                     return answer_;
                   }),
                   "c",
                   clock_);
};

TEST_F(Breaker, FailsAtOnceAfterSomeFailuresAndTriesAgainLater) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(ask());
  }
  EXPECT_EQ(asked_, kBreakerFailures);
  EXPECT_EQ(transport_->post_form("http://t/y", "").error().code, ErrorCode::kUnavailable);
  clock_.advance(kBreakerPause);
  EXPECT_FALSE(ask());
  EXPECT_FALSE(ask());
  EXPECT_EQ(asked_, kBreakerFailures + 1);
  clock_.advance(kBreakerPause);
  answer_ = FakeTransport::ok("{}");
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(ask());
  }
  EXPECT_EQ(asked_, kBreakerFailures + 6);
}

TEST_F(Breaker, AnAnswerInBetweenCounts) {
  for (int round = 0; round < 5; ++round) {
    answer_ = fail(ErrorCode::kUnavailable, "refused");
    for (int i = 1; i < kBreakerFailures; ++i) {
      EXPECT_FALSE(ask());
    }
    answer_ = FakeTransport::status(400, "a wrong query is an answer");
    EXPECT_TRUE(ask());
  }
  EXPECT_EQ(asked_, 5 * kBreakerFailures);
}

TEST_F(Breaker, AProxyWithoutItsServerIsAFailure) {
  answer_ = FakeTransport::status(503, "");
  for (int i = 0; i < kBreakerFailures; ++i) {
    EXPECT_TRUE(ask());  // the caller sees the status
  }
  EXPECT_FALSE(ask());
}

TEST_F(Breaker, ARequestWhoseClientLeftIsNoFailure) {
  answer_ = fail(ErrorCode::kUnavailable, "cancelled");
  std::stop_source left;
  left.request_stop();
  {
    const CancelScope scope(left.get_token());
    EXPECT_TRUE(CancelScope::cancelled());
    for (int i = 0; i < kBreakerFailures; ++i) {
      EXPECT_FALSE(ask());
    }
  }
  EXPECT_FALSE(CancelScope::cancelled());
  // Nor does it take the try of another one.
  for (int i = 0; i < kBreakerFailures; ++i) {
    EXPECT_FALSE(ask());
  }
  clock_.advance(kBreakerPause);
  {
    const CancelScope scope(left.get_token());
    EXPECT_FALSE(ask());
  }
  answer_ = FakeTransport::ok("{}");
  EXPECT_TRUE(ask());
}

}  // namespace
}  // namespace ceems::tsdb
