#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cacct/output/table.h"

namespace ceems::example {

using cacct::Field;

Field flags_field();  // of cacct: its row in src/cacct/output/fields.cc

namespace {

using ::testing::HasSubstr;

std::vector<Field> known() {
  const auto fields = cacct::server_fields();
  std::vector<Field> all(fields.begin(), fields.end());
  all.push_back(flags_field());
  return all;
}

TEST(Flags, AreShownWhereTheyAreAskedFor) {
  cacct::Record unit;
  unit.texts["uuid"] = "7";
  unit.texts["flags"] = "requeued";
  const auto chosen = cacct::parse_format("jobid,FLAGS", known());
  ASSERT_TRUE(chosen) << chosen.error().message;
  const cacct::Table table = cacct::make_table(*chosen, {unit}, {});
  EXPECT_EQ(cacct::to_parsable(table, true), "jobID|flags\n7|requeued\n");
  EXPECT_THAT(cacct::to_json(*chosen, {unit}, {}), HasSubstr(R"("flags":"requeued")"));
}

TEST(Flags, AreListedInTheHelp) {
  EXPECT_THAT(cacct::fields_help(known(), {}),
              HasSubstr("| flags          | How the manager treated the job"));
}

/// The box cuts cells to `max` columns, and every column has room for its title's words.
TEST(Flags, AreAFieldLikeTheOthers) {
  const Field flags = flags_field();
  EXPECT_EQ(std::ranges::count(known(), flags.name, &Field::name), 1);
  EXPECT_LE(flags.min, flags.max);
}

}  // namespace
}  // namespace ceems::example
