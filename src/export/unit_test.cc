#include "export/unit.h"

#include <gtest/gtest.h>

#include "export/test_unit.h"

namespace ceems::exporting {
namespace {

TEST(ExportedUnit, IsShownAsSlurmShowsIt) {
  ExportedUnit unit = test_unit();
  EXPECT_EQ(unit.shown_id(), "7100_4");
  unit.allocation = JsonMembers::parse(R"({"het_job":8200,"het_offset":1})");
  EXPECT_EQ(unit.shown_id(), "8200+1");
  unit.allocation = JsonMembers::parse(R"({"array_job":0,"array_task":4})");
  EXPECT_EQ(unit.shown_id(), "7104");
}

TEST(ExportedUnit, TimeIsThatOfUseWhereItIsKnown) {
  ExportedUnit unit = test_unit();
  unit.times = {{"walltime", 3000}};  // suspended for ten minutes
  EXPECT_EQ(unit.seconds(), 3000);
  unit.times = {};
  EXPECT_EQ(unit.seconds(), 3600);
  unit.ended_ms = unit.started_ms - 1;
  EXPECT_EQ(unit.seconds(), 0);
  unit.started_ms = 0;  // never ran
  EXPECT_EQ(unit.seconds(), 0);
}

}  // namespace
}  // namespace ceems::exporting
