#include "metrics/desc.h"

#include <gtest/gtest.h>

namespace ceems::metrics {
namespace {

TEST(Desc, SortsLabelsByName) {
  const Desc desc("ceems_x", "X.", Type::kGauge, {"uuid", "hostname", "manager"});
  EXPECT_EQ(desc.sorted, (std::vector<std::size_t>{1, 2, 0}));
}

TEST(DescDeathTest, RejectsNamesThatPrometheusCannotRead) {
  EXPECT_DEATH(Desc("9lives", "", Type::kGauge, {}), "is_metric_name");
  EXPECT_DEATH(Desc("", "", Type::kGauge, {}), "is_metric_name");
  EXPECT_DEATH(Desc("a-b", "", Type::kGauge, {}), "is_metric_name");
  EXPECT_DEATH(Desc("a", "", Type::kGauge, {"x:y"}), "is_label_name");
  EXPECT_DEATH(Desc("a", "", Type::kGauge, {"__name__"}), "is_label_name");
  EXPECT_DEATH(Desc("a", "", Type::kGauge, {"x", "y", "x"}), "label_names");
}

TEST(SanitizeName, ReplacesRunsOfForeignCharacters) {
  EXPECT_EQ(sanitize_name("Chassis-1"), "Chassis_1");
  EXPECT_EQ(sanitize_name("System.Embedded.1"), "System_Embedded_1");
  EXPECT_EQ(sanitize_name("a_-_b"), "a_b");
  EXPECT_EQ(sanitize_name("--x--"), "_x_");
  EXPECT_EQ(sanitize_name("HGX_Chassis_0"), "HGX_Chassis_0");
  EXPECT_EQ(sanitize_name("a__b"), "a__b");
  EXPECT_EQ(sanitize_name("package-0-die-1"), "package_0_die_1");
  EXPECT_EQ(sanitize_name("\xff\xfe"), "_");
  EXPECT_EQ(sanitize_name("a{b}\xFF"), "a_b_");
  EXPECT_EQ(sanitize_name(""), "");
}

}  // namespace
}  // namespace ceems::metrics
