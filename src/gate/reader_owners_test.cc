#include "gate/reader_owners.h"

#include <gtest/gtest.h>

#include "store/database.h"
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
class ReaderOwnersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = store::Database::open(
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
    owners = reader_owners(database->reader());
  }
  bool sees(const std::string& user, const std::string& cluster, const UnitSet& units) {
    return owners->may_see(user, cluster, units).value();
  }

  testing::TempDir dir;
  testing::FakeClock clock;
  std::unique_ptr<store::Database> database;
  std::unique_ptr<Owners> owners;
};

TEST_F(ReaderOwnersTest, MembersSeeTheirProjects) {
  EXPECT_TRUE(sees("ada", "a", {"1", "2"}));
  EXPECT_FALSE(sees("ada", "a", {"1", "3"}));
  EXPECT_FALSE(sees("eve", "a", {"1"}));
  EXPECT_FALSE(sees("", "a", {"1"}));
  EXPECT_FALSE(sees("ada", "a", {}));
  EXPECT_EQ(owners->units_of("ada", "a", 10).value(), (UnitSet{"1"}));
}

TEST_F(ReaderOwnersTest, LeadsSeeTheProjectsTheyLeadOnThatCluster) {
  EXPECT_TRUE(sees("lea", "a", {"1", "2"}));
  EXPECT_FALSE(sees("lea", "a", {"1", "3"}));
  EXPECT_FALSE(sees("lea", "b", {"1"}));
  // What open selectors are confined to.
  EXPECT_EQ(owners->units_of("lea", "a", 10).value(), (UnitSet{"1", "2"}));
  EXPECT_EQ(owners->units_of("lea", "b", 10).value(), UnitSet{});
}

TEST_F(ReaderOwnersTest, UnitsOfLedProjectsAreOwnAmongThoseWithOneId) {
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

}  // namespace
}  // namespace ceems::gate
