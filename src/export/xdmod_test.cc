#include <algorithm>

#include <gtest/gtest.h>

#include "export/all.h"
#include "export/test_unit.h"

namespace ceems::exporting {
namespace {

std::string xdmod_line(const ExportedUnit& unit) {
  std::string out;
  xdmod_format().create({})->add(unit, out);
  return out;
}

TEST(ExportXdmod, IsALineOfSacct) {
  EXPECT_EQ(xdmod_line(test_unit()),
            "7100_4|7104|hpc-a|gpu|normal|fluids|phys|100|ada|1000|2025-12-31T22:00:00|"
            "2025-12-31T22:01:00|2025-12-31T23:00:00|2026-01-01T00:00:00|01:00:00|0:0|COMPLETED|2|"
            "64|60|1025M|cpu=60,mem=1025M,node=2,gres/gpu=4|cpu=64,mem=262144M,node=2,gres/gpu=4|"
            "02:00:00|n[01-02]|md,run\n");
}

TEST(ExportXdmod, OtherManagersHaveTheirHostsSeparatedByCommas) {
  const ExportedUnit unit{
      .manager = "openpbs",
      .uuid = "9.pbs",
      .allocation = JsonMembers::parse(R"({"cpus":4})"),
      .tags = JsonMembers::parse(R"({"queue":"batch","nodelist":"a|b"})"),
  };
  EXPECT_EQ(
      xdmod_line(unit),
      "9.pbs|9.pbs||batch|||||||Unknown|Unknown|Unknown|Unknown|00:00:00|0:0|COMPLETED|1|4|4||"
      "cpu=4,node=1|cpu=4,node=1|UNLIMITED|a,b|\n");
}

TEST(ExportXdmod, NoTextMovesTheOtherFields) {
  const std::string line =
      xdmod_line({.uuid = "1|2", .name = "a|b\nc", .user = "x\r\n", .project = "p|"});
  EXPECT_EQ(std::ranges::count(line, '|'), 25);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_TRUE(line.ends_with("|a_b_c\n")) << line;
}

}  // namespace
}  // namespace ceems::exporting
