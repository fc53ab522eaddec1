#include "ingest/manager/manager.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/unit_fields.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(UsersAndProjects, AreSortedByName) {
  const auto both = users_and_projects({{"p2", "bob"}, {"p1", "zoe"}, {"p1", "bob"}});
  ASSERT_EQ(both.users.size(), 2U);
  EXPECT_EQ(both.users[0].name, "bob");
  EXPECT_THAT(both.users[0].projects, ElementsAre("p1", "p2"));
  EXPECT_EQ(both.users[1].name, "zoe");
  EXPECT_THAT(both.users[1].projects, ElementsAre("p1"));
  ASSERT_EQ(both.projects.size(), 2U);
  EXPECT_EQ(both.projects[0].name, "p1");
  EXPECT_THAT(both.projects[0].users, ElementsAre("bob", "zoe"));
  EXPECT_THAT(both.projects[1].users, ElementsAre("bob"));
  EXPECT_THAT(users_and_projects({}).users, IsEmpty());
  EXPECT_THAT(users_and_projects({}).projects, IsEmpty());
}

TEST(UnitFields, PrintTimesInTheZone) {
  model::Unit unit;
  unit.created_at_ts = 1'767'225'600'000;
  unit.started_at_ts = 1'767'225'661'999;
  print_times(unit, TimeZone::find("Europe/Paris").value(), "N/A");
  EXPECT_EQ(unit.created_at, "2026-01-01T01:00:00+0100");
  EXPECT_EQ(unit.started_at, "2026-01-01T01:01:01+0100");
  EXPECT_EQ(unit.ended_at, "N/A");
}

TEST(UnitFields, AllocationTimesAreSecondsTimesWhatIsHeld) {
  EXPECT_EQ(allocation_times(10, 4, 2048, 2), (model::MetricMap{{"walltime", 10},
                                                                {"alloc_cputime", 40},
                                                                {"alloc_cpumemtime", 20480},
                                                                {"alloc_gputime", 20},
                                                                {"alloc_gpumemtime", 20}}));
}

}  // namespace
}  // namespace ceems::ingest
