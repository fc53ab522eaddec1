#include "access/policy.h"

#include <gtest/gtest.h>

#include "store/test_database.h"

namespace ceems::access {
namespace {

using Names = std::vector<std::string>;

using store::kNow;

class PolicyTest : public store::AnyDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
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
      // ada is in fluids only on cluster a.
      update.projects = std::vector<model::Project>{
          {.name = "fluids", .users = cluster == "a" ? Names{"ada", "bob"} : Names{"bob"}}};
      write(update);
    }
  }
  store::Reader& reader() { return db_->reader(); }
};

const Roles kRoles{
    .project_leads = {{.cluster_id = "b", .project = "fluids", .users = {"lea", "sue"}}},
    .support = {"sue"}};

Identity user(std::string name) {
  return {.user = std::move(name), .role = Role::kUser};
}

TEST_F(PolicyTest, ZeroValuesDeny) {
  EXPECT_EQ(Decision{}, Decision::kDeny);
  EXPECT_EQ(admin_area({}), Decision::kDeny);
  EXPECT_EQ(see_admins({}), Decision::kDeny);
  // An incomplete identity has no rights.
  const Identity nameless{.user = "", .role = Role::kAdmin, .led = {{"a", "fluids"}}};
  const Identity roleless{.user = "ada", .role = Role::kNobody, .led = {{"a", "fluids"}}};
  for (const Identity& nobody : {Identity{}, nameless, roleless}) {
    EXPECT_EQ(admin_area(nobody), Decision::kDeny);
    EXPECT_EQ(see_admins(nobody), Decision::kDeny);
    EXPECT_FALSE(leads(nobody, "a", "fluids"));
    for (const store::Scope& scope :
         {own_rows(nobody, {"fluids"}), own_accounts(nobody, {}), chosen_rows(nobody, {}, {}),
          own_projects(nobody), series_rows(nobody, {}), store::Scope{}}) {
      EXPECT_FALSE(scope.everybody);
      EXPECT_TRUE(scope.names.empty());
      EXPECT_TRUE(scope.service_projects.empty());
      EXPECT_TRUE(scope.led_projects.empty());
    }
    EXPECT_EQ(see_metrics(reader(), nobody, {"a"}, {"1a"}), Decision::kDeny);
  }
}

TEST_F(PolicyTest, TheFirstConfiguredHeaderWithAValueNamesTheUser) {
  const net::Headers headers{{"x-second", "two"}, {"X-First", ""}, {"X-Third", "three"}};
  EXPECT_EQ(user_name(headers, {"X-First", "X-Second", "X-Third"}), "two");
  EXPECT_EQ(user_name(headers, {"X-Grafana-User"}), "");
  // Headers that other programs use internally have no meaning here.
  EXPECT_EQ(user_name({{"X-Ceems-Admin-User", "root"}}, {"X-Grafana-User"}), "");
}

TEST_F(PolicyTest, AUserHeaderThatIsGivenTwiceNamesNobody) {
  for (const std::string second : {"ada", "eve", ""}) {
    EXPECT_EQ(user_name({{"X-User", "ada"}, {"x-user", second}}, {"X-User"}), std::nullopt);
    EXPECT_EQ(user_name({{"X-User", second}, {"X-USER", "ada"}}, {"X-User"}), std::nullopt);
  }
  EXPECT_EQ(user_name({{"X-User", "ada"}, {"X-B", "1"}, {"X-B", "2"}}, {"X-User", "X-B"}),
            std::nullopt);
  EXPECT_EQ(user_name({{"X-User", "ada"}, {"X-Other", "1"}, {"X-Other", "2"}}, {"X-User"}), "ada");
}

TEST_F(PolicyTest, TheStrongestRoleCountsAndNamesAreMatchedExactly) {
  const auto role = [this](const std::string& name, Role granted = Role::kNobody) {
    return identify(reader(), kRoles, name, granted)->role;
  };
  EXPECT_EQ(role("root"), Role::kAdmin);
  EXPECT_EQ(role("sue"), Role::kSupport);
  EXPECT_EQ(role("lea"), Role::kProjectLead);
  EXPECT_EQ(role("ada"), Role::kUser);
  EXPECT_EQ(role(""), Role::kNobody);
  for (const std::string other : {"Root", "root ", "' OR '1'='1", "Sue", "sue ", "LEA"}) {
    EXPECT_EQ(role(other), Role::kUser) << other;
  }
  // What the groups of a provider can add, and what they cannot.
  EXPECT_EQ(role("ada", Role::kAdmin), Role::kAdmin);
  EXPECT_EQ(role("ada", Role::kSupport), Role::kSupport);
  EXPECT_EQ(role("ada", Role::kProjectLead), Role::kUser);
  EXPECT_EQ(role("root", Role::kSupport), Role::kAdmin);
  EXPECT_EQ(role("", Role::kAdmin), Role::kNobody);
}

TEST_F(PolicyTest, ManagersAndTheConfigurationNameLeads) {
  store::ClusterUpdate update;
  update.cluster.id = "b";
  update.window = {kNow + 1000, kNow + 2000};
  update.leads = {{"fluids", {"lea", "max", "root"}}, {"optics", {"lea"}}};
  write(update);
  const Identity max = identify(reader(), kRoles, "max").value();
  EXPECT_EQ(max.role, Role::kProjectLead);
  EXPECT_TRUE(leads(max, "b", "fluids"));
  EXPECT_FALSE(leads(max, "a", "fluids"));
  const Identity lea = identify(reader(), kRoles, "lea").value();
  EXPECT_EQ(lea.led.size(), 2U);  // a project that both name counts once
  EXPECT_TRUE(leads(lea, "b", "optics"));
  const Identity root = identify(reader(), kRoles, "root").value();
  EXPECT_EQ(root.role, Role::kAdmin);
  EXPECT_TRUE(leads(root, "b", "fluids"));
  EXPECT_EQ(identify(reader(), kRoles, "Max")->role, Role::kUser);
  EXPECT_TRUE(identify(reader(), kRoles, "")->led.empty());
}

TEST_F(PolicyTest, SupportMayAlsoLeadProjects) {
  const Identity sue = identify(reader(), kRoles, "sue").value();
  EXPECT_TRUE(leads(sue, "b", "fluids"));
  EXPECT_FALSE(leads(sue, "a", "fluids"));
  EXPECT_FALSE(leads(sue, "b", "optics"));
}

TEST_F(PolicyTest, TheConfigurationNamesAdminsWhateverTheDatabaseHas) {
  const Roles roles{.admins = {"eve"}, .support = {"eve"}};
  EXPECT_EQ(identify(reader(), roles, "eve")->role, Role::kAdmin);
  EXPECT_EQ(identify(reader(), roles, "Eve")->role, Role::kUser);
  EXPECT_EQ(identify(reader(), roles, "root")->role, Role::kAdmin);
}

TEST_F(PolicyTest, WithoutTheListsNoRoleIsKnown) {
  ASSERT_TRUE(db_->close());
  for (const std::string name : {"root", "max", "lea", "sue", "ada"}) {
    const auto identity = identify(reader(), kRoles, name);
    ASSERT_FALSE(identity) << name;
    EXPECT_EQ(identity.error().code, ErrorCode::kUnavailable);
  }
  EXPECT_EQ(identify(reader(), kRoles, "")->role, Role::kNobody);
  EXPECT_EQ(see_metrics(reader(), user("ada"), {"a"}, {"1a"}), Decision::kDeny);
}

TEST_F(PolicyTest, EveryUnitMustBeInAProjectOfTheCallerOnItsCluster) {
  const Identity ada = user("ada");
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {"1a"}), Decision::kAllow);
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {"1a", "1a", "2a"}), Decision::kAllow);
  EXPECT_EQ(see_metrics(reader(), ada, {"a", "b"}, {"1a", "1b"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {"b"}, {"1b"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {"1a", "nothing"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {}, {"1a"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), ada, {"a"}, {}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), user("eve"), {"a"}, {"1a"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), {.user = "root", .role = Role::kAdmin}, {"b"}, {"1b"}),
            Decision::kAllow);
}

TEST_F(PolicyTest, LeadsSeeMetricsOfTheirProjectsOnlyOnThatCluster) {
  const Identity lea = identify(reader(), kRoles, "lea").value();
  EXPECT_EQ(see_metrics(reader(), lea, {"b"}, {"1b", "2b"}), Decision::kAllow);
  EXPECT_EQ(see_metrics(reader(), lea, {"a"}, {"1a"}), Decision::kDeny);
  EXPECT_EQ(see_metrics(reader(), lea, {"a", "b"}, {"1a", "1b"}), Decision::kDeny);
}

TEST_F(PolicyTest, SupportSeesMetricsLikeAUser) {
  const Identity support{.user = "sam", .role = Role::kSupport};
  EXPECT_EQ(see_metrics(reader(), support, {"a"}, {"1a"}), Decision::kDeny);
  EXPECT_FALSE(series_rows(support, {}).everybody);
  EXPECT_EQ(series_rows(support, {}).names, Names{"sam"});
  EXPECT_TRUE(series_rows({.user = "root", .role = Role::kAdmin}, {}).everybody);
}

TEST_F(PolicyTest, OnlyAdminsAndSupportChooseUsers) {
  for (const Role role : {Role::kAdmin, Role::kSupport}) {
    const Identity root{.user = "root", .role = role};
    EXPECT_EQ(admin_area(root), Decision::kAllow);
    EXPECT_TRUE(chosen_rows(root, {}, {"fluids"}).everybody);
    EXPECT_EQ(chosen_rows(root, {"ada"}, {"fluids"}).names, (Names{"ada", "fluids:svc"}));
  }
  EXPECT_EQ(see_admins({.user = "root", .role = Role::kAdmin}), Decision::kAllow);
  EXPECT_EQ(see_admins({.user = "sue", .role = Role::kSupport}), Decision::kDeny);
  for (const Role role : {Role::kUser, Role::kProjectLead}) {
    const Identity lea{.user = "lea", .role = role, .led = {{"b", "fluids"}}};
    EXPECT_EQ(admin_area(lea), Decision::kDeny);
    EXPECT_FALSE(chosen_rows(lea, {"bob"}, {}).everybody);
    EXPECT_TRUE(chosen_rows(lea, {"bob"}, {}).names.empty());
  }
}

TEST_F(PolicyTest, PartSelectsAmongTheRowsOfTheCaller) {
  const Identity lea{.user = "lea", .role = Role::kProjectLead, .led = {{"b", "fluids"}}};
  const store::Scope all = own_rows(lea, {"fluids"});
  EXPECT_EQ(all.names, Names{"lea"});
  EXPECT_EQ(all.service_projects, Names{"fluids"});
  ASSERT_EQ(all.led_projects.size(), 1U);
  EXPECT_EQ(all.led_projects[0].cluster_id, "b");
  EXPECT_TRUE(own_rows(lea, {}, Part::kOwn).led_projects.empty());
  EXPECT_TRUE(own_accounts(lea, {}).led_projects.empty());
  const store::Scope led = own_rows(lea, {"fluids"}, Part::kLed);
  EXPECT_TRUE(led.names.empty());
  EXPECT_TRUE(led.service_projects.empty());
  EXPECT_EQ(led.led_projects.size(), 1U);
  EXPECT_EQ(own_rows(user("ada"), {"fluids"}).names, Names{"ada"});
  EXPECT_TRUE(own_rows(user("ada"), {}, Part::kLed).names.empty());
}

TEST(Policy, WhatPeopleWroteIsForOwnersLeadsAndAdmins) {
  const Identity lead{
      .user = "lea", .role = Role::kProjectLead, .led = {{.cluster_id = "a", .project = "p"}}};
  EXPECT_TRUE(sees_written(lead, "lea", "b", "q"));
  EXPECT_TRUE(sees_written(lead, "bob", "a", "p"));
  EXPECT_FALSE(sees_written(lead, "bob", "b", "p"));
  EXPECT_FALSE(sees_written(lead, "bob", "a", "q"));
  const Identity support{.user = "sue", .role = Role::kSupport};
  EXPECT_FALSE(sees_written(support, "bob", "a", "p"));
  EXPECT_TRUE(sees_written(support, "sue", "a", "p"));
  EXPECT_TRUE(sees_written({.user = "root", .role = Role::kAdmin}, "bob", "a", "p"));
  EXPECT_FALSE(sees_written({}, "", "a", "p"));
  EXPECT_FALSE(sees_written({.user = "", .role = Role::kAdmin}, "bob", "a", "p"));
}

TEST(Policy, ReportsAreMadeOfAllRows) {
  EXPECT_TRUE(all_rows_for_reports().everybody);
}

TEST(Policy, RowsOfAnOwnerAreThatUsersOnly) {
  EXPECT_EQ(rows_of_owner("ada").names, std::vector<std::string>{"ada"});
  EXPECT_FALSE(rows_of_owner("ada").everybody);
  EXPECT_TRUE(rows_of_owner("").names.empty());
  EXPECT_FALSE(rows_of_owner("").everybody);
}

}  // namespace
}  // namespace ceems::access
