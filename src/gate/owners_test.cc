#include "gate/owners.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "store/database.h"
#include "store/factory/open_database.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::gate {
namespace {

constexpr std::int64_t kNow = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
constexpr std::int64_t kHour = 3'600'000;

model::Unit unit(const std::string& uuid, const std::string& project, const std::string& user) {
  model::Unit made;
  made.resource_manager = "slurm";
  made.uuid = uuid;
  made.name = uuid;
  made.project = project;
  made.username = user;
  made.created_at_ts = kNow;
  made.started_at = std::to_string(kNow);
  made.started_at_ts = kNow;
  made.state = "RUNNING";
  return made;
}

/// On clusters a and b: ada is a member of fluids, bob of fluids and optics; lea leads fluids on a
/// and is a member of nothing.
class DatabaseOwnersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = store::open_database(
        {.directory = dir.path().string(), .time_zone = "UTC", .url = {}}, clock);
    ASSERT_TRUE(opened) << opened.error().message;
    database = std::move(*opened);
    for (const std::string cluster : {"a", "b"}) {
      store::ClusterUpdate update;
      update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
      update.window = {kNow, kNow + kHour};
      update.units = {unit("1", "fluids", "ada"), unit("2", "fluids", "bob"),
                      unit("3", "optics", "bob")};
      update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada", "bob"}},
                                                    {.name = "optics", .users = {"bob"}}};
      if (cluster == "a") {
        update.leads.emplace();
        (*update.leads)["fluids"] = {"lea"};
      }
      ASSERT_TRUE(database->writer().write(update));
    }
    owners = database_owners(database->reader());
  }
  bool sees(const std::string& user, const std::string& cluster, const UnitSet& units) {
    return owners->may_see(user, cluster, units).value();
  }

  ceems::testing::TempDir dir;
  ceems::testing::FakeClock clock;
  std::unique_ptr<store::Database> database;
  std::unique_ptr<Owners> owners;
};

TEST_F(DatabaseOwnersTest, MembersSeeTheirProjects) {
  EXPECT_TRUE(sees("ada", "a", {"1", "2"}));
  EXPECT_FALSE(sees("ada", "a", {"1", "3"}));
  EXPECT_FALSE(sees("eve", "a", {"1"}));
  EXPECT_FALSE(sees("", "a", {"1"}));
  EXPECT_FALSE(sees("ada", "a", {}));
  EXPECT_EQ(owners->units_of("ada", "a", kAllTimes, 10).value(), (UnitSet{"1"}));
}

TEST_F(DatabaseOwnersTest, OwnersSeeTheirUnitsAfterTheyLeftTheProject) {
  store::ClusterUpdate update;
  update.cluster = {.id = "a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}},
                                                {.name = "optics", .users = {"bob"}}};
  ASSERT_TRUE(database->writer().write(update));
  EXPECT_TRUE(sees("ada", "a", {"1"}));
  EXPECT_FALSE(sees("ada", "a", {"2"}));
  EXPECT_TRUE(sees("ada", "b", {"1", "2"}));  // where ada still is a member
  EXPECT_TRUE(owners->shared_ids("ada", "a", {"1"})->empty());
}

TEST_F(DatabaseOwnersTest, LeadsSeeTheProjectsTheyLeadOnThatCluster) {
  EXPECT_TRUE(sees("lea", "a", {"1", "2"}));
  EXPECT_FALSE(sees("lea", "a", {"1", "3"}));
  EXPECT_FALSE(sees("lea", "b", {"1"}));
  // What open selectors are confined to.
  EXPECT_EQ(owners->units_of("lea", "a", kAllTimes, 10).value(), (UnitSet{"1", "2"}));
  EXPECT_EQ(owners->units_of("lea", "b", kAllTimes, 10).value(), UnitSet{});
}

TEST_F(DatabaseOwnersTest, OnlyUnitsThatLivedThenAreOnesOwn) {
  store::ClusterUpdate update;
  update.cluster = {.id = "a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  model::Unit ended = unit("4", "fluids", "ada");
  ended.ended_at_ts = kNow + 10;
  ended.ended_at = "then";
  ended.state = "COMPLETED";
  update.units = {std::move(ended)};
  ASSERT_TRUE(database->writer().write(update));
  const auto alive = [&](std::int64_t from, std::int64_t to) {
    return owners->units_of("ada", "a", {.from_ms = kNow + from, .to_ms = kNow + to}, 10).value();
  };
  EXPECT_EQ(alive(5, 6), (UnitSet{"1", "4"}));
  EXPECT_EQ(alive(-5, 0), (UnitSet{"1", "4"}));
  EXPECT_EQ(alive(10, 11), (UnitSet{"1", "4"}));
  EXPECT_EQ(alive(11, 20), (UnitSet{"1"}));
  EXPECT_EQ(alive(-5, -1), UnitSet{});
}

TEST_F(DatabaseOwnersTest, UnitsOfLedProjectsAreOwnAmongThoseWithOneId) {
  auto again = unit("1", "optics", "bob");
  again.started_at_ts = kNow + kHour;
  again.started_at = std::to_string(kNow + kHour);
  store::ClusterUpdate update;
  update.cluster = {.id = "a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  update.units = {again};
  ASSERT_TRUE(database->writer().write(update));
  const auto ids = owners->shared_ids("lea", "a", {"1"});
  ASSERT_TRUE(ids);
  ASSERT_EQ(ids->count("1"), 1U);
  EXPECT_EQ(ids->at("1").own, (std::vector<promql::TimeSpan>{{kNow, kNow + kHour - 1}}));
  EXPECT_EQ(ids->at("1").others, (std::vector<promql::TimeSpan>{{kNow + kHour, kFarTime}}));
  EXPECT_TRUE(owners->shared_ids("eve", "a", {"1"})->at("1").own.empty());
}

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
                           const promql::TimeSpan& /*alive*/,
                           std::size_t /*limit*/) override {
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
  Owners* const memory = cached->cached_only();
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
  EXPECT_FALSE(cached->cached_only()->shared_ids("alice", "c", {"used"}));
  const auto same = [&](const Result<SharedIds>& ids) {
    return ids && ids->size() == 1 && ids->begin()->first == "used" &&
           ids->begin()->second.own == expected.at("used").own &&
           ids->begin()->second.others == expected.at("used").others;
  };
  EXPECT_TRUE(same(cached->shared_ids("alice", "c", {"used", "once"})));
  EXPECT_TRUE(same(cached->shared_ids("alice", "c", {"used", "new"})));
  EXPECT_EQ(owners.asked, UnitSet{"new"});
  EXPECT_EQ(owners.calls, 2);
  EXPECT_TRUE(same(cached->cached_only()->shared_ids("alice", "c", {"new", "once", "used"})));
  EXPECT_EQ(cached->cached_only()->shared_ids("alice", "c", {"new", "once"})->size(), 0U);
  EXPECT_FALSE(cached->cached_only()->shared_ids("bob", "c", {"used"}));
  EXPECT_FALSE(cached->cached_only()->shared_ids("alice", "d", {"used"}));
  EXPECT_EQ(owners.calls, 2);
  clock.advance(std::chrono::seconds(10));
  owners.broken = true;
  EXPECT_FALSE(cached->shared_ids("alice", "c", {"used"}));
}

}  // namespace
}  // namespace ceems::gate
