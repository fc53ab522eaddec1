#include "export/anonymise.h"

#include <gtest/gtest.h>

#include "export/all.h"
#include "export/test_unit.h"

namespace ceems::exporting {
namespace {

constexpr const char* kKey = "0123456789abcdef";

TEST(Anonymiser, LeavesNothingThatPeopleWrote) {
  const auto anonymiser = Anonymiser::create(kKey);
  ASSERT_TRUE(anonymiser);
  ExportedUnit unit = test_unit();
  anonymiser->apply(unit);
  for (const FormatSpec& format : formats()) {
    std::string out;
    const auto made = format.create({.provider = "site", .currency = "EUR"});
    made->add(unit, out);
    made->end(out);
    for (const std::string_view text :
         {"ada", "phys", "fluids", "md,run", "/home", "n[01", "1000|"}) {
      EXPECT_EQ(out.find(text), std::string::npos) << format.name << ": " << text << "\n" << out;
    }
    EXPECT_NE(out.find("gpu"), std::string::npos) << out;
  }
}

TEST(Anonymiser, TheSameNameIsTheSameHash) {
  const auto anonymiser = Anonymiser::create(kKey);
  const auto other = Anonymiser::create("another key, just as long");
  ASSERT_TRUE(anonymiser && other);
  ExportedUnit one = test_unit();
  ExportedUnit two = test_unit();
  two.project = two.user;  // another kind
  ExportedUnit three = test_unit();
  anonymiser->apply(one);
  anonymiser->apply(two);
  other->apply(three);
  EXPECT_EQ(one.user.size(), 16U);
  EXPECT_EQ(one.user, two.user);
  EXPECT_NE(two.project, two.user);
  EXPECT_NE(one.user, three.user);
  ExportedUnit nobody{.uuid = "7"};
  anonymiser->apply(nobody);
  EXPECT_EQ(nobody.user, "");
}

TEST(Anonymiser, KeysThatCouldBeGuessedAreRefused) {
  const auto anonymiser = Anonymiser::create("short");
  ASSERT_FALSE(anonymiser);
  EXPECT_EQ(anonymiser.error().message, "the key has 5 bytes, at least 16 are needed");
}

}  // namespace
}  // namespace ceems::exporting
