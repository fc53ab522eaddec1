#include "access/digests.h"

#include <gmock/gmock.h>

namespace ceems::access {
namespace {

using Seen = DigestRows::Seen;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DigestRows, AreNobodysByDefault) {
  EXPECT_EQ(DigestRows{}.seen, Seen::kNothing);
  const Identity nameless{.user = "", .role = Role::kAdmin};
  const Identity roleless{.user = "ada", .role = Role::kNobody, .led = {{"a", "fluids"}}};
  for (const Identity& nobody : {Identity{}, nameless, roleless}) {
    EXPECT_EQ(own_digest(nobody).seen, Seen::kNothing);
    EXPECT_EQ(project_digest(nobody, "fluids", {}, true).seen, Seen::kNothing);
  }
  const Identity admin{.user = "root", .role = Role::kAdmin};
  EXPECT_EQ(project_digest(admin, "", {}, true).seen, Seen::kNothing);
}

TEST(DigestRows, OfUsersAreTheirOwnOnly) {
  for (const Role role : {Role::kUser, Role::kProjectLead, Role::kSupport, Role::kAdmin}) {
    const Identity ada{.user = "ada", .role = role, .led = {{"a", "fluids"}}};
    const DigestRows rows = own_digest(ada);
    EXPECT_EQ(rows.seen, Seen::kWhole);
    EXPECT_THAT(rows.units.users, ElementsAre("ada"));
    EXPECT_FALSE(rows.units.owners.everybody);
    EXPECT_THAT(rows.units.owners.names, ElementsAre("ada"));
    EXPECT_THAT(rows.units.owners.led_projects, IsEmpty());
    EXPECT_FALSE(rows.members.everybody);
    EXPECT_THAT(rows.members.led_projects, IsEmpty());
  }
}

TEST(DigestRows, OfAProjectDependOnTheRole) {
  const Identity lead{.user = "lea", .role = Role::kProjectLead, .led = {{"a", "fluids"}}};
  const DigestRows led = project_digest(lead, "fluids", {}, true);
  EXPECT_EQ(led.seen, Seen::kWhole);
  EXPECT_TRUE(led.written);
  EXPECT_FALSE(led.units.owners.everybody);
  EXPECT_EQ(led.units.owners.led_projects.size(), 1U);
  EXPECT_THAT(led.units.owners.names, IsEmpty());
  EXPECT_THAT(led.units.projects, ElementsAre("fluids"));
  EXPECT_EQ(project_digest(lead, "fluids", {"b"}, true).seen, Seen::kBand);
  EXPECT_EQ(project_digest(lead, "fluids", {"b"}, false).seen, Seen::kNothing);
  EXPECT_EQ(project_digest(lead, "optics", {}, false).seen, Seen::kNothing);
  const Identity user{.user = "ada", .role = Role::kUser};
  EXPECT_EQ(project_digest(user, "fluids", {}, true).seen, Seen::kBand);
  EXPECT_EQ(project_digest(user, "fluids", {}, false).seen, Seen::kNothing);
  const DigestRows support =
      project_digest({.user = "sue", .role = Role::kSupport}, "fluids", {}, false);
  EXPECT_EQ(support.seen, Seen::kWhole);
  EXPECT_FALSE(support.written);
  EXPECT_FALSE(support.units.names.everybody);
  const DigestRows admin =
      project_digest({.user = "root", .role = Role::kAdmin}, "fluids", {}, false);
  EXPECT_EQ(admin.seen, Seen::kWhole);
  EXPECT_TRUE(admin.written);
  EXPECT_TRUE(admin.members.everybody);
  EXPECT_THAT(admin.units.projects, ElementsAre("fluids"));
}

}  // namespace
}  // namespace ceems::access
