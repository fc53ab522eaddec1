#include "exporter/doctor/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/doctor/doctor.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

constexpr std::string_view kResults =
    "# note\n"
    "family;results;idle;compute;scalar;memory-bound;mixed;all\n"
    "AMD EPYC Milan;2;1.5;3.2;4.1;40.0;;12.0\n"
    "ARM Neoverse V2;1;;3.0;4.0;5.0;6.0;4.5\n";

std::string validated(std::string_view table, std::string_view family) {
  const auto text = validated_error(table, family);
  return text ? *text : text.error().message;
}

TEST(ValidatedError, IsThatOfTheFamily) {
  EXPECT_EQ(
      validated(kResults, "AMD EPYC Milan"),
      "2 real nodes with AMD EPYC Milan were validated: mean error of loads 12 % (compute 3.2, "
      "scalar 4.1, memory-bound 40), of the idle node 1.5 %");
  EXPECT_EQ(validated(kResults, "ARM Neoverse V2"),
            "1 real node with ARM Neoverse V2 was validated: mean error of loads 4.5 % (compute 3, "
            "scalar 4, memory-bound 5, mixed 6)");
  EXPECT_EQ(validated(kResults, "AMD EPYC Genoa"), "");
  EXPECT_EQ(validated(kResults, ""), "");
}

TEST(ValidatedError, NamesTheLineOfAnotherTable) {
  const std::string head = "family;results;idle;compute;scalar;memory-bound;mixed;all\n";
  const std::string expected =
      "table of results, line 2: expected 'family;results;idle;compute;scalar;memory-bound;mixed;"
      "all'";
  for (const char* row : {"A;1;2;3;4;5;6", "A;0;2;3;4;5;6;7", "A;x;2;3;4;5;6;7", "A;1;2;-3;4;5;6;7",
                          "A;1;2;3;4;5;6;", "A;1;2;3;4;5;6;7;8", "A"}) {
    EXPECT_EQ(validated(head + row, "A"), expected) << row;
  }
  EXPECT_THAT(validated("A;1;2;3;4;5;6;7\n", "A"), ::testing::HasSubstr("line 1"));
  EXPECT_TRUE(validated_error(kResultsCsv, "AMD EPYC Milan"));
}

TEST(Doctor, SaysThatAKindOfNodeWasNotValidated) {
  const ::ceems::testing::TempDir dir;
  dir.write("cpuinfo", "processor\t: 0\nvendor_id\t: Fantasy\ncpu family\t: 1\nmodel\t\t: 1\n");
  DoctorContext context;
  context.paths.proc = dir.path();
  Findings findings;
  examine_validation(context, findings);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].collector, "validation");
  EXPECT_EQ(findings[0].state, Finding::State::kOff);
  EXPECT_EQ(findings[0].cause,
            "no one has validated the energy of a node with this CPU yet: 'ceems_tool validate "
            "energy' does, with a meter of the node");
}

}  // namespace
}  // namespace ceems::exporter
