#include "cacct/output/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const std::vector<Field>& fields) {
  std::vector<std::string> result;
  for (const Field& field : fields) {
    result.push_back(field.name);
  }
  return result;
}

std::string format_refusal(std::string_view text) {
  const auto parsed = parse_format(text, server_fields());
  return parsed ? "accepted" : parsed.error().message;
}

/// Later ones are shown on request; tests/integration/programs.md lists all.
TEST(Fields, AreThoseOfTheReferenceLaterOnesAndCustomMetrics) {
  EXPECT_TRUE(parse_format("allocation,slurmid,totaltime,customtotal,customavg,custommin,custommax",
                           server_fields()));
  std::vector<std::string> shown;
  std::vector<std::string> in_long;
  for (const Field& field : server_fields()) {
    if (field.by_default) {
      shown.push_back(field.label);
    }
    if (field.in_long) {
      in_long.push_back(field.label);
    }
  }
  EXPECT_THAT(shown, ElementsAre("jobID", "Account", "elapsed", "cpuUsage", "cpuMemoryUsage",
                                 "hostEnergy", "hostEmissions", "gpuUsage", "gpuMemoryUsage",
                                 "gpuEnergy", "gpuEmissions"));
  EXPECT_THAT(in_long, ElementsAre("jobID", "slurmID", "Name", "Account", "group", "user",
                                   "createdAt", "startedAt", "endedAt", "elapsed", "state",
                                   "cpuUsage", "cpuMemoryUsage", "hostEnergy", "hostEmissions",
                                   "gpuUsage", "gpuMemoryUsage", "gpuEnergy", "gpuEmissions"));
}

TEST(Fields, AreChosenInAnyCaseOnceAndInTheOrderGiven) {
  const auto chosen = parse_format("State,JOBID,,state, account ", server_fields());
  ASSERT_TRUE(chosen);
  EXPECT_THAT(names(*chosen), ElementsAre("state", "jobid", "account"));
  EXPECT_THAT(names(in_table_order(*chosen, server_fields())),
              ElementsAre("jobid", "account", "state"));
  EXPECT_TRUE(parse_format(",", server_fields())->empty());
}

TEST(Fields, TakeWidths) {
  const auto chosen = parse_format("name%20,account%-12", server_fields());
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->at(0).max, 20U);
  EXPECT_EQ(chosen->at(0).min, 20U);
  EXPECT_TRUE(chosen->at(0).right);
  EXPECT_EQ(chosen->at(1).max, 12U);
  EXPECT_FALSE(chosen->at(1).right);
  for (const char* text : {"name%", "name%x", "name%0", "name%1001", "name%--3", "name%3%4"}) {
    EXPECT_THAT(format_refusal(text), HasSubstr("expected a width from 1 to 1000")) << text;
  }
}

TEST(Fields, SuggestTheNearestName) {
  EXPECT_EQ(format_refusal("jobid,hostenrgy"),
            "unknown field 'hostenrgy' in --format (did you mean 'hostenergy'?)");
  EXPECT_EQ(format_refusal("\x1b[2J"),
            "unknown field '\\x1b[2J' in --format; --helpformat lists them");
  EXPECT_THAT(format_refusal("%5"), HasSubstr("unknown field '%5'"));
}

TEST(Fields, ShowNumbersByKind) {
  EXPECT_EQ(number_text(FieldKind::kRatio, 21.22149), "21.22");
  EXPECT_EQ(number_text(FieldKind::kAmount, 21.22149394), "21.221494");
  EXPECT_EQ(number_text(FieldKind::kWhole, 970588160), "970588160");
}

}  // namespace
}  // namespace ceems::cacct
