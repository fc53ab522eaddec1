#include <string>

#include <gtest/gtest.h>

#include "exporter/ipmi/power_command.h"

namespace ceems::exporter::ipmi {
namespace {

std::string watts(const Result<Power>& power) {
  return power ? fmt::format("{} {} {} {}", power->current, power->minimum, power->maximum,
                             power->average)
               : std::string(to_string(power.error().code)) + ": " + power.error().message;
}
std::string text(std::string_view output) {
  return watts(parse_power_output(Format::kText, output));
}
std::string capmc(std::string_view output) {
  return watts(parse_power_output(Format::kCapmc, output));
}

constexpr std::string_view kInactive = "unavailable: power measurement is not active";
constexpr std::string_view kNoState =
    "parse: the output has no line with the state of power measurement";

TEST(PowerOutput, OfIpmiDcmi) {
  EXPECT_EQ(text("Current Power                        : 164 Watts\n"
                 "Minimum Power over sampling duration : 48 watts\n"
                 "Maximum Power over sampling duration : 361 watts\n"
                 "Average Power over sampling duration : 157 watts\n"
                 "Time Stamp                           : 02/07/2026 - 10:11:12\n"
                 "Statistics reporting time period     : 1000 milliseconds\n"
                 "Power Measurement                    : Active\n"),
            "164 48 361 157");
  EXPECT_EQ(text("Current Power : 164 Watts\nPower Measurement : Not Available\n"), kInactive);
}

TEST(PowerOutput, OfIpmitool) {
  const std::string reading =
      "\n    Instantaneous power reading:                   321 Watts\n"
      "    Minimum during sampling period:                100 Watts\n"
      "    Maximum during sampling period:                500 Watts\n"
      "    Average power reading over sample period:      300 Watts\n"
      "    IPMI timestamp:                           Thu Jan  1 00:00:00 1970\n"
      "    Sampling period:                          00001000 Milliseconds\n"
      "    Power reading state is:                   ";
  EXPECT_EQ(text(reading + "activated\n\n\n"), "321 100 500 300");
  EXPECT_EQ(text(reading + "deactivated\n\n\n"), kInactive);
}

TEST(PowerOutput, OfIpmiutil) {
  const std::string reading =
      "ipmiutil dcmi ver 3.17\r\n"
      "  Current Power:                   52 Watts\r\n"
      "  Min Power over sample duration:  7 Watts\r\n"
      "  Max Power over sample duration:  298 Watts\r\n"
      "  Avg Power over sample duration:  51 Watts\r\n"
      "  Power reading state is:          ";
  EXPECT_EQ(text(reading + "active\r\n"), "52 7 298 51");
  EXPECT_EQ(text(reading + "not active\r\n"), kInactive);
}

TEST(PowerOutput, TheFirstLineThatMatchesCounts) {
  EXPECT_EQ(text("Current Power : none\nCurrent Power:12.5Watts\nCurrent Power: 13 Watts\n"
                 "Power Measurement: unknown\nPower Measurement : Active\n"
                 "Power Measurement : Not Available"),
            "12.5 0 0 0");
}

TEST(PowerOutput, MissingAndBrokenQuantitiesAreZero) {
  EXPECT_EQ(text("Power Measurement : Active"), "0 0 0 0");
  EXPECT_EQ(text("Current Power : 1.2.3 Watts\nMinimum during sampling period: 5 Volts\n"
                 "Maximum during sampling period: -5 Watts\n"
                 "Average power reading over sample period: " +
                 std::string(400, '9') + " Watts\nPower Measurement : Active"),
            "0 0 0 0");
  EXPECT_EQ(text("Current Power : 1000000001 Watts\nPower Measurement : Active"), "0 0 0 0");
}

TEST(PowerOutput, WithoutAStateIsInvalid) {
  EXPECT_EQ(text(""), kNoState);
  EXPECT_EQ(text("Current Power : 164 Watts\n"), kNoState);
  EXPECT_EQ(text("Current Power : 164 Watts\nXPower Measurement : Active\n"), kNoState);
  EXPECT_EQ(text("Could not open device at /dev/ipmi0\n"), kNoState);
}

TEST(PowerOutput, ThatIsNotText) {
  EXPECT_EQ(text("Power Measurement : Active\n\xff\xfe"), "parse: the output is not text");
  EXPECT_EQ(text(std::string_view("Power Measurement : Active\n\0", 28)),
            "parse: the output is not text");
}

TEST(PowerOutput, OfCapmcUsesTheAverageAsCurrentPower) {
  EXPECT_EQ(capmc(R"({"start_time":"x","avg":4211,"min":4100,"max":4400,"e":0,"err_msg":""})"),
            "4211 4100 4400 4211");
  EXPECT_EQ(capmc(R"({"current":10,"min":1.5,"avg":0,"max":"many"})"), "10 1.5 0 0");
  EXPECT_EQ(capmc("{}"), "0 0 0 0");
  EXPECT_EQ(capmc(R"({"current":-4,"max":1e300})"), "0 0 0 0");
}

TEST(PowerOutput, OfCapmcWithAnError) {
  EXPECT_EQ(capmc(R"({"e":22,"err_msg":"Invalid\narguments","avg":5})"),
            "unavailable: error 22: Invalid\\x0aarguments");
  EXPECT_EQ(capmc(R"({"e":22,"avg":5})"), "5 0 0 5")
      << "as in the reference: without a message it is not an error";
}

TEST(PowerOutput, OfCapmcThatIsNotJson) {
  for (const char* broken :
       {"", "[]", "5", "{\"avg\":", "{\"avg\":5}}", "Current Power : 1 Watts"}) {
    EXPECT_EQ(capmc(broken), "parse: expected one JSON object") << broken;
  }
  EXPECT_EQ(capmc(std::string(100'000, '[')), "parse: expected one JSON object");
}

}  // namespace
}  // namespace ceems::exporter::ipmi
