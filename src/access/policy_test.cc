#include "access/policy.h"

#include <gtest/gtest.h>

#include "store/database.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::access {
namespace {

using Names = std::vector<std::string>;

constexpr std::int64_t kNow = 1'767'225'600'000;

class PolicyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto db =
        store::Database::open({.directory = dir_.path().string(), .time_zone = "UTC"}, clock_);
    ASSERT_TRUE(db);
    db_ = std::move(*db);
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root"}));
    for (const std::string cluster : {"a", "b"}) {
      store::ClusterUpdate update;
      update.cluster.id = cluster;
      update.window = {kNow, kNow + 1000};
      for (const std::string uuid : {"1", "2"}) {
        model::Unit unit;
        unit.uuid = uuid + cluster;
        unit.username = "bob";
        unit.project = "fluids";
        unit.started_at_ts = kNow;
        update.units.push_back(unit);
      }
      // ada is in fluids on cluster a only.
      update.projects = std::vector<model::Project>{
          {.name = "fluids", .users = cluster == "a" ? Names{"ada", "bob"} : Names{"bob"}}};
      ASSERT_TRUE(db_->writer().write(update));
    }
  }
  store::Reader& reader() { return db_->reader(); }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::unique_ptr<store::Database> db_;
};

TEST_F(PolicyTest, ZeroValuesDeny) {
  EXPECT_EQ(Decision{}, Decision::kDeny);
  EXPECT_EQ(admin_area({}), Decision::kDeny);
  EXPECT_EQ(admin_area({.user = "", .admin = true}), Decision::kDeny);
  for (const store::Scope& scope :
       {own_rows({}, {"fluids"}), chosen_rows({}, {}, {}), own_projects({}), store::Scope{}}) {
    EXPECT_FALSE(scope.everybody);
    EXPECT_TRUE(scope.names.empty());
    EXPECT_TRUE(scope.service_projects.empty());
  }
  EXPECT_EQ(see_metrics(reader(), {}, {"a"}, {"1a"}), Decision::kDeny);
}

TEST_F(PolicyTest, TheFirstConfiguredHeaderWithAValueNamesTheUser) {
  const net::Headers headers{{"x-second", "two"}, {"X-First", ""}, {"X-Second", "three"}};
  EXPECT_EQ(user_name(headers, {"X-First", "X-Second"}), "two");
  EXPECT_EQ(user_name(headers, {"X-Grafana-User"}), "");
}

TEST_F(PolicyTest, AdminsAreMatchedExactly) {
  const Names header{"X-Grafana-User"};
  EXPECT_TRUE(identify(reader(), {{"X-Grafana-User", "root"}}, header).admin);
  EXPECT_FALSE(identify(reader(), {{"X-Grafana-User", "Root"}}, header).admin);
  EXPECT_FALSE(identify(reader(), {{"X-Grafana-User", "root "}}, header).admin);
  EXPECT_FALSE(identify(reader(), {{"X-Grafana-User", "' OR '1'='1"}}, header).admin);
  // What other programs use internally means nothing here.
  EXPECT_EQ(identify(reader(), {{"X-Ceems-Admin-User", "root"}}, header).user, "");
}

TEST_F(PolicyTest, WithoutTheListNobodyIsAdmin) {
  ASSERT_TRUE(db_->close());
  const Identity identity = identify(reader(), {{"X-Grafana-User", "root"}}, {"X-Grafana-User"});
  EXPECT_EQ(identity.user, "root");
  EXPECT_FALSE(identity.admin);
  EXPECT_EQ(see_metrics(reader(), {.user = "ada"}, {"a"}, {"1a"}), Decision::kDeny);
}

TEST_F(PolicyTest, EveryUnitMustBeInAProjectOfTheCallerOnItsCluster) {
  const Identity ada{.user = "ada"};
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {"1a"}), Decision::kAllow);
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {"1a", "1a", "2a"}), Decision::kAllow);
  EXPECT_EQ(see_metrics(reader(), ada, {"a", "b"}, {"1a", "1b"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {"b"}, {"1b"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {"1a", "nothing"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {}, {"1a"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), {.user = "eve"}, {"a"}, {"1a"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), {.user = "root", .admin = true}, {"b"}, {"1b"}),
            Decision::kAllow);
}

TEST_F(PolicyTest, OnlyAdminsChooseUsers) {
  const Identity root{.user = "root", .admin = true};
  EXPECT_TRUE(chosen_rows(root, {}, {"fluids"}).everybody);
  EXPECT_EQ(chosen_rows(root, {"ada"}, {"fluids"}).names, (Names{"ada", "fluids:svc"}));
  EXPECT_TRUE(chosen_rows({.user = "ada"}, {"bob"}, {}).names.empty());
  EXPECT_EQ(own_rows({.user = "ada"}, {"fluids"}).names, Names{"ada"});
  EXPECT_EQ(own_rows({.user = "ada"}, {"fluids"}).service_projects, Names{"fluids"});
}

}  // namespace
}  // namespace ceems::access
