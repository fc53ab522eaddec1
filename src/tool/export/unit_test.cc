#include "tool/export/unit.h"

#include <gtest/gtest.h>

#include "tool/export/test_unit.h"

namespace ceems::tool::exporting {
namespace {

TEST(ExportedUnit, MembersAreReadFromJson) {
  const auto members =
      Members::parse(R"({"a":"x\"y","n":2.5,"big":1e999,"o":{"k":[1]},"null":null,"t":true})");
  EXPECT_EQ(members.text("a"), "x\"y");
  EXPECT_EQ(members.number("n"), 2.5);
  EXPECT_EQ(members.number("a"), std::nullopt);
  EXPECT_EQ(members.number("big"), std::nullopt);
  EXPECT_EQ(members.text("o"), R"({"k":[1]})");
  EXPECT_EQ(members.text("null"), "");
  EXPECT_EQ(members.first("none", "t"), "true");
}

TEST(ExportedUnit, WhatIsNotAnObjectHasNoMembers) {
  for (const std::string_view text : {"", "[]", "null", "{", "{\"a\"", "x"}) {
    EXPECT_EQ(Members::parse(text).text("a"), "") << text;
  }
  EXPECT_EQ(Members::parse(R"({"a":1,"b":)").text("a"), "1");  // cut short
}

TEST(ExportedUnit, IsShownAsSlurmShowsIt) {
  ExportedUnit unit = test_unit();
  EXPECT_EQ(unit.shown_id(), "7100_4");
  unit.allocation = Members::parse(R"({"het_job":8200,"het_offset":1})");
  EXPECT_EQ(unit.shown_id(), "8200+1");
  unit.allocation = Members::parse(R"({"array_job":0,"array_task":4})");
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
}  // namespace ceems::tool::exporting
