#include "lb/owner_breaker.h"

#include <gtest/gtest.h>

#include "testing/fake_clock.h"

namespace ceems::lb {
namespace {

using std::chrono::milliseconds;

/// A source of owners whose questions take some time and fail or not.
class FakeSource final : public gate::Owners {
 public:
  explicit FakeSource(testing::FakeClock& clock) : clock_(&clock) {}

  Result<bool> is_admin(const std::string& /*user*/) override {
    ++asked;
    clock_->advance(takes);
    if (fails) {
      return fail(ErrorCode::kTimeout, "no answer");
    }
    return true;
  }
  Result<bool> may_see(const std::string& /*user*/,
                       const std::string& /*cluster*/,
                       const gate::UnitSet& /*units*/) override {
    return is_admin({});
  }
  Result<gate::UnitSet> units_of(const std::string& /*user*/,
                                 const std::string& /*cluster*/,
                                 const promql::TimeSpan& /*alive*/,
                                 std::size_t /*limit*/) override {
    ++asked;
    return gate::UnitSet{"1"};
  }
  Result<gate::SharedIds> shared_ids(const std::string& /*user*/,
                                     const std::string& /*cluster*/,
                                     const gate::UnitSet& /*units*/) override {
    ++asked;
    return gate::SharedIds();
  }

  int asked = 0;
  bool fails = false;
  milliseconds takes{0};

 private:
  testing::FakeClock* clock_;
};

class OwnerBreaker : public ::testing::Test {
 protected:
  /// Asks `times` times and returns how many questions came through to the source.
  int asked(int times) {
    const int before = source_.asked;
    for (int i = 0; i < times; ++i) {
      const auto answer = owners_->is_admin("alice");
      EXPECT_EQ(answer.has_value(), !source_.fails && source_.asked > before);
    }
    return source_.asked - before;
  }

  testing::FakeClock clock_;
  FakeSource source_{clock_};
  std::unique_ptr<gate::Owners> owners_ = interruptible_owners(
      source_,
      clock_,
      {.slow = milliseconds(500), .pause = milliseconds(2000), .max_pause = milliseconds(5000)});
};

TEST_F(OwnerBreaker, AsksWhileThereAreAnswersHoweverSlow) {
  source_.takes = milliseconds(900);
  EXPECT_EQ(asked(10), 10);
}

TEST_F(OwnerBreaker, QuickFailuresAreAskedAgain) {
  source_.fails = true;
  source_.takes = milliseconds(499);
  EXPECT_EQ(asked(10), 10);
}

TEST_F(OwnerBreaker, AfterATimeoutNothingIsAskedForAWhileAndThenOneQuestion) {
  source_.fails = true;
  source_.takes = milliseconds(1000);
  EXPECT_EQ(asked(100), 1);
  EXPECT_FALSE(owners_->may_see("alice", "c", {"1"}));
  EXPECT_FALSE(owners_->units_of("alice", "c", gate::kAllTimes, 5));
  EXPECT_FALSE(owners_->shared_ids("alice", "c", {"1"}));
  EXPECT_EQ(source_.asked, 1);
  clock_.advance(milliseconds(1999));
  EXPECT_EQ(asked(5), 0);
  clock_.advance(milliseconds(1));
  EXPECT_EQ(asked(5), 1);
  clock_.advance(milliseconds(3999));
  EXPECT_EQ(asked(5), 0) << "the pause doubles";
  clock_.advance(milliseconds(1));
  EXPECT_EQ(asked(5), 1);
  clock_.advance(milliseconds(5000));  // the longest
  source_.fails = false;
  EXPECT_EQ(asked(5), 5);
  source_.fails = true;
  EXPECT_EQ(asked(5), 1);
  clock_.advance(milliseconds(2000));
  EXPECT_EQ(asked(5), 1) << "it begins anew";
}

TEST_F(OwnerBreaker, AQuickFailureEndsThePause) {
  source_.fails = true;
  source_.takes = milliseconds(1000);
  EXPECT_EQ(asked(3), 1);
  clock_.advance(milliseconds(2000));
  source_.takes = milliseconds(1);
  EXPECT_EQ(asked(3), 3);
}

}  // namespace
}  // namespace ceems::lb
