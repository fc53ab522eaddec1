#include "api/request/shown_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using ::testing::ElementsAre;

/// Which of these places the id asks for.
std::string places(std::string_view text) {
  const auto ids = parse_shown_ids(text);
  if (!ids) {
    return "none";
  }
  std::string found = ids->prefix + ":";
  const std::string mark(1, text.at(text.find_first_of("_+")));
  for (int place = 0; place <= 12; ++place) {
    if (ids->place_of("7100" + mark + std::to_string(place))) {
      found += " " + std::to_string(place);
    }
  }
  return found;
}

TEST(ShownIds, AreThoseOfSqueueSacctAndMails) {
  EXPECT_EQ(places("7100_4"), "7100_4: 4");
  EXPECT_EQ(places("7100_0"), "7100_0: 0");
  EXPECT_EQ(places("7100_04"), "7100_4: 4");
  EXPECT_EQ(places("7100_[4-5]"), "7100_: 4 5");
  EXPECT_EQ(places("7100_[1,3-5%2]"), "7100_: 1 3 4 5");
  EXPECT_EQ(places("7100_[0-12:4,5]"), "7100_: 0 4 5 8 12");
  EXPECT_EQ(places("7100_[7]"), "7100_: 7");
  EXPECT_EQ(places("7100_*"), "7100_: 0 1 2 3 4 5 6 7 8 9 10 11 12");
  EXPECT_EQ(places("8200+1"), "8200+1: 1");
  EXPECT_EQ(places("8200+*"), "8200+: 0 1 2 3 4 5 6 7 8 9 10 11 12");
  EXPECT_FALSE(parse_shown_ids("7100_[4-5]")->place_of("7100_"));
}

TEST(ShownIds, AreNotIdsOfUnits) {
  for (const char* text :
       {"",           "7100",         "7100_",    "_4",          "7100_x",
        "7100_-1",    "7100_4_5",     "7100_[",   "7100_[]",     "7100_[4",
        "7100_[5-4]", "7100_[0-9:0]", "7100_[a]", "7100_[1,,2]", "6[1]",
        "6.head",     "x_4",          "7100+",    "7100_4 ",     "7100_99999999999999999999",
        "0b5e-11_2"}) {
    EXPECT_EQ(places(text), "none") << text;
  }
}

TEST(ShownIds, AreAlsoThoseOfSteps) {
  EXPECT_EQ(job_of_step("7100_4.batch"), "7100_4");
  EXPECT_EQ(job_of_step("8200+1.extern"), "8200+1");
  EXPECT_EQ(job_of_step("7100_4.0"), "7100_4");
  EXPECT_EQ(job_of_step("9000.interactive"), "9000");
  for (const char* text :
       {"", ".", "9000", "9000.0", "9000.srv", "7100_4.x", "x.batch", "7100_4"}) {
    EXPECT_EQ(job_of_step(text), text);
  }
}

TEST(ShownIds, CommasWithinBracketsDoNotSplit) {
  EXPECT_THAT(split_ids("7100_[1,3-5%2], 9000,8200+1"),
              ElementsAre("7100_[1,3-5%2]", "9000", "8200+1"));
  EXPECT_THAT(split_ids("a]b,c"), ElementsAre("a]b", "c"));
  EXPECT_THAT(split_ids("a[b,c"), ElementsAre("a[b,c"));
  EXPECT_THAT(split_ids(""), ElementsAre(""));
}

}  // namespace
}  // namespace ceems::api
