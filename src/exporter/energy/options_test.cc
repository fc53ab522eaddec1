#include "exporter/energy/options.h"

#include <string>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

std::string idle_error(std::string_view text) {
  const auto watts = parse_idle_watts(text);
  return watts ? std::string() : watts.error().message;
}

TEST(IdleWatts, TakesNothingOneNumberOrAList) {
  EXPECT_EQ(parse_idle_watts(" ").value().at(index(Domain::kNode)), std::nullopt);
  EXPECT_EQ(parse_idle_watts("120").value().at(index(Domain::kNode)), 120);
  EXPECT_EQ(parse_idle_watts("0").value().at(index(Domain::kNode)), 0);
  EXPECT_EQ(parse_idle_watts("other=5").value().at(index(Domain::kOther)), 5);
  const auto list = parse_idle_watts("package=90, dram=12.5").value();
  EXPECT_EQ(list.at(index(Domain::kPackage)), 90);
  EXPECT_EQ(list.at(index(Domain::kDram)), 12.5);
  EXPECT_EQ(list.at(index(Domain::kNode)), std::nullopt);
}

TEST(IdleWatts, NamesTheInvalidPart) {
  const std::string expected =
      "expected a number of watts or a list such as package=90,dram=12 "
      "(package, dram, gpu, other, node), got ";
  EXPECT_EQ(idle_error("psys=5"), expected + "'psys=5'");
  EXPECT_EQ(idle_error("package=90,"), expected + "''");
  EXPECT_EQ(idle_error("package"), expected + "'package'");
  EXPECT_EQ(idle_error("package=-1"), expected + "'package=-1'");
  EXPECT_EQ(idle_error("package=nan"), expected + "'package=nan'");
  EXPECT_EQ(idle_error("1e9"), expected + "'1e9'");
  EXPECT_EQ(idle_error("dram=1,dram=2"), "idle watts of dram are given twice");
}

TEST(ModelWatts, TakesNothingOrTwoReadings) {
  EXPECT_FALSE(parse_model_watts(" ").value().has_value());
  for (const char* text : {"idle=95,full=410.5", " full=410.5 , idle=95"}) {
    const auto watts = parse_model_watts(text).value();
    ASSERT_TRUE(watts) << text;
    EXPECT_EQ(watts->idle, 95);
    EXPECT_EQ(watts->full, 410.5);
  }
  EXPECT_EQ(parse_model_watts("idle=95,full=95").value()->full, 95);
}

TEST(ModelWatts, NamesTheInvalidPart) {
  const auto error = [](std::string_view text) {
    const auto watts = parse_model_watts(text);
    return watts ? std::string() : watts.error().message;
  };
  const std::string expected = "expected two readings in watts, such as idle=95,full=410, got ";
  EXPECT_EQ(error("95"), expected + "'95'");
  EXPECT_EQ(error("idle=95,"), expected + "''");
  EXPECT_EQ(error("idle=95"), expected + "only idle");
  EXPECT_EQ(error("full=95"), expected + "only full");
  EXPECT_EQ(error("idle=0,full=9"), expected + "'idle=0'");
  EXPECT_EQ(error("idle=-1,full=9"), expected + "'idle=-1'");
  EXPECT_EQ(error("idle=1,full=1e9"), expected + "'full=1e9'");
  EXPECT_EQ(error("idle=1,full=nan"), expected + "'full=nan'");
  EXPECT_EQ(error("idle=1,half=2"), expected + "'half=2'");
  EXPECT_EQ(error("idle=1,idle=2"), "the watts of idle are given twice");
  EXPECT_EQ(error("idle=410,full=95"),
            "expected less power when idle than at full load, got idle=410 and full=95");
}

TEST(StateFileOption, IsInTheFirstStateDirectoryOfTheService) {
  EXPECT_EQ(default_state_file(nullptr), "");
  EXPECT_EQ(default_state_file(""), "");
  EXPECT_EQ(default_state_file("relative"), "");
  EXPECT_EQ(default_state_file("/var/lib/ceems_exporter"), "/var/lib/ceems_exporter/energy.json");
  EXPECT_EQ(default_state_file("/var/lib/a:/var/lib/b"), "/var/lib/a/energy.json");
}

TEST(EnergyDuration, MustLieInItsRange) {
  using std::chrono::milliseconds;
  const auto parse = [](std::string_view text) {
    return parse_duration("--f", text, milliseconds(100), milliseconds(60'000));
  };
  EXPECT_EQ(parse("1s").value(), milliseconds(1000));
  EXPECT_EQ(parse("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse("10ms").error().message, "--f: expected 100ms to 1m0s, got '10ms'");
  EXPECT_FALSE(parse("2m"));
  EXPECT_TRUE(parse("soon").error().message.starts_with("--f: "));
}

TEST(ParseSecondThread, IsAFraction) {
  EXPECT_EQ(parse_second_thread("0.25"), 0.25);
  EXPECT_EQ(parse_second_thread("0"), 0);
  EXPECT_EQ(parse_second_thread(" 1 "), 1);
  for (const char* bad : {"", "-0.1", "1.1", "nan", "inf", "a", "0.2x"}) {
    const auto result = parse_second_thread(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(parse_second_thread("2").error().message, "expected a number in 0...1, got '2'");
}

}  // namespace
}  // namespace ceems::exporter::energy
