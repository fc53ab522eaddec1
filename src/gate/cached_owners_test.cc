#include <algorithm>

#include <gtest/gtest.h>

#include "gate/owners.h"
#include "testing/fake_clock.h"

namespace ceems::gate {
namespace {

class CountingOwners final : public Owners {
 public:
  Result<bool> is_admin(const std::string& user) override {
    ++calls;
    if (broken) {
      return fail(ErrorCode::kUnavailable, "away");
    }
    return user == "root";
  }
  Result<bool> may_see(const std::string& user,
                       const std::string& /*cluster*/,
                       const UnitSet& units) override {
    ++calls;
    asked = units;
    if (broken) {
      return fail(ErrorCode::kUnavailable, "away");
    }
    return user == "alice" && !units.contains("other");
  }
  Result<UnitSet> units_of(const std::string& /*user*/,
                           const std::string& /*cluster*/,
                           std::size_t /*most*/) override {
    ++calls;
    return UnitSet{"own"};
  }
  Result<SharedIds> shared_ids(const std::string& /*user*/,
                               const std::string& /*cluster*/,
                               const UnitSet& units) override {
    ++calls;
    asked = units;
    if (broken) {
      return fail(ErrorCode::kUnavailable, "away");
    }
    return units.contains("used") ? SharedIds{{"used", {.own = {{5, 6}}, .others = {{1, 2}}}}}
                                  : SharedIds{};
  }
  int calls = 0;
  bool broken = false;
  UnitSet asked;
};

class CachedOwnersTest : public ::testing::Test {
 protected:
  CountingOwners owners;
  ceems::testing::FakeClock clock;
  std::unique_ptr<Owners> cached =
      cached_owners(owners, clock, {.age = std::chrono::seconds(10), .entries = 200});
};

TEST_F(CachedOwnersTest, AnswersAreRememberedForTheirAge) {
  EXPECT_TRUE(cached->is_admin("root").value_or(false));
  EXPECT_TRUE(cached->is_admin("root").value_or(false));
  EXPECT_EQ(owners.calls, 1);
  clock.advance(std::chrono::seconds(10));
  EXPECT_TRUE(cached->is_admin("root").value_or(false));
  EXPECT_EQ(owners.calls, 2);
}

TEST_F(CachedOwnersTest, OnlyUnknownUnitsAreAskedFor) {
  EXPECT_TRUE(cached->may_see("alice", "c", {"a", "b"}).value_or(false));
  EXPECT_TRUE(cached->may_see("alice", "c", {"b", "c"}).value_or(false));
  EXPECT_EQ(owners.asked, (UnitSet{"c"}));
  EXPECT_FALSE(cached->may_see("alice", "c", {"a", "other"}).value_or(true));
  EXPECT_EQ(owners.asked, (UnitSet{"other"}));
  EXPECT_FALSE(cached->may_see("alice", "c", {"other"}).value_or(true));
  EXPECT_EQ(owners.calls, 3);
}

TEST_F(CachedOwnersTest, ARefusalOfSeveralSaysNothingOfEach) {
  EXPECT_FALSE(cached->may_see("alice", "c", {"a", "other"}).value_or(true));
  EXPECT_TRUE(cached->may_see("alice", "c", {"a"}).value_or(false));
}

TEST_F(CachedOwnersTest, UsersAndClustersDoNotMix) {
  EXPECT_TRUE(cached->may_see("alice", "c", {"1:a"}).value_or(false));
  EXPECT_FALSE(cached->may_see("bob", "c", {"1:a"}).value_or(true));
  EXPECT_FALSE(cached->may_see("alice1:c", "1:a", {""}).value_or(true));
  EXPECT_EQ(owners.calls, 3);
}

TEST_F(CachedOwnersTest, NothingIsSeenWithoutUnits) {
  EXPECT_FALSE(cached->may_see("alice", "c", {}).value_or(true));
}

TEST_F(CachedOwnersTest, OutagesAreNotRemembered) {
  owners.broken = true;
  EXPECT_FALSE(cached->is_admin("root"));
  owners.broken = false;
  EXPECT_TRUE(cached->is_admin("root").value_or(false));
}

TEST_F(CachedOwnersTest, AnOutageIsLoggedWhenItBeginsAndWhenItIsOver) {
  const auto lines_of = [&](bool broken) {
    owners.broken = broken;
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) {
      (void)cached->is_admin("user" + std::to_string(i));
      (void)cached->may_see("alice", "c", {std::to_string(i)});
    }
    const std::string text = ::testing::internal::GetCapturedStderr();
    return std::pair(std::ranges::count(text, '\n'), text);
  };
  EXPECT_EQ(lines_of(false).first, 0);
  clock.advance(std::chrono::seconds(10));
  const auto away = lines_of(true);
  EXPECT_EQ(away.first, 1);
  EXPECT_NE(away.second.find("err=away"), std::string::npos) << away.second;
  EXPECT_EQ(lines_of(false).first, 1);
}

TEST_F(CachedOwnersTest, MemoryAsksNobody) {
  Owners* const memory = cached->remembered();
  ASSERT_NE(memory, nullptr);
  EXPECT_FALSE(memory->is_admin("root"));
  EXPECT_FALSE(memory->may_see("alice", "c", {"a"}));
  EXPECT_EQ(owners.calls, 0);
  EXPECT_TRUE(cached->is_admin("root").value_or(false));
  EXPECT_TRUE(cached->may_see("alice", "c", {"a"}).value_or(false));
  EXPECT_FALSE(cached->may_see("alice", "c", {"other"}).value_or(true));
  EXPECT_EQ(owners.calls, 3);
  EXPECT_TRUE(memory->is_admin("root").value_or(false));
  EXPECT_TRUE(memory->may_see("alice", "c", {"a"}).value_or(false));
  EXPECT_FALSE(memory->may_see("alice", "c", {"a", "other"}).value_or(true));
  EXPECT_FALSE(memory->may_see("alice", "c", {"a", "b"})) << "b is not known";
  EXPECT_FALSE(memory->may_see("alice", "c", {}).value_or(true));
  EXPECT_EQ(owners.calls, 3);
}

TEST_F(CachedOwnersTest, LongNamesAreNotKept) {
  const std::string unit(2000, 'u');
  EXPECT_TRUE(cached->may_see("alice", "c", {unit}).value_or(false));
  EXPECT_TRUE(cached->may_see("alice", "c", {unit}).value_or(false));
  EXPECT_EQ(owners.calls, 2);
}

TEST_F(CachedOwnersTest, EntriesAreBounded) {
  for (int i = 0; i < 300; ++i) {
    (void)cached->is_admin("user" + std::to_string(i));
  }
  EXPECT_EQ(owners.calls, 300);
  (void)cached->is_admin("user299");
  EXPECT_EQ(owners.calls, 300);
  (void)cached->is_admin("user0");
  EXPECT_EQ(owners.calls, 301);
}

TEST_F(CachedOwnersTest, SharedIdsAreRememberedOneByOne) {
  const SharedIds expected = {{"used", {.own = {{5, 6}}, .others = {{1, 2}}}}};
  EXPECT_FALSE(cached->remembered()->shared_ids("alice", "c", {"used"}));
  const auto same = [&](const Result<SharedIds>& ids) {
    return ids && ids->size() == 1 && ids->begin()->first == "used" &&
           ids->begin()->second.own == expected.at("used").own &&
           ids->begin()->second.others == expected.at("used").others;
  };
  EXPECT_TRUE(same(cached->shared_ids("alice", "c", {"used", "once"})));
  EXPECT_TRUE(same(cached->shared_ids("alice", "c", {"used", "new"})));
  EXPECT_EQ(owners.asked, UnitSet{"new"});
  EXPECT_EQ(owners.calls, 2);
  EXPECT_TRUE(same(cached->remembered()->shared_ids("alice", "c", {"new", "once", "used"})));
  EXPECT_EQ(cached->remembered()->shared_ids("alice", "c", {"new", "once"})->size(), 0U);
  EXPECT_FALSE(cached->remembered()->shared_ids("bob", "c", {"used"}));
  EXPECT_FALSE(cached->remembered()->shared_ids("alice", "d", {"used"}));
  EXPECT_EQ(owners.calls, 2);
  clock.advance(std::chrono::seconds(10));
  owners.broken = true;
  EXPECT_FALSE(cached->shared_ids("alice", "c", {"used"}));
}

}  // namespace
}  // namespace ceems::gate
