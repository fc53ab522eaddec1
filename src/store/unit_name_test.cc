#include "store/unit_name.h"

#include <gtest/gtest.h>

namespace ceems::store {
namespace {

TEST(UnitName, OfAFamilyHasItsNumbersAsOneSign) {
  EXPECT_EQ(normal_name("train_7 (12)"), "train_# (#)");
  EXPECT_EQ(normal_name("2024"), "#");
  EXPECT_EQ(normal_name(""), "");
}

}  // namespace
}  // namespace ceems::store
