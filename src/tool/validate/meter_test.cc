#include "tool/validate/meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::tool::validate {
namespace {

using ::testing::HasSubstr;

class Meters : public ::testing::Test {
 protected:
  MeterOptions options(std::string meter) {
    MeterOptions options;
    options.meter = std::move(meter);
    options.sys = (dir_.path() / "sys").string();
    options.dev = (dir_.path() / "dev").string();
    return options;
  }
  std::unique_ptr<ReferenceMeter> open(const std::string& meter) {
    return open_meter(options(meter), clock_).value();
  }
  std::string open_error(const MeterOptions& options) {
    const auto meter = open_meter(options, clock_);
    return meter ? "" : meter.error().message;
  }
  void write(const std::string& file, std::string_view text) { dir_.write(file, text); }
  void write_power(int number, std::string_view microwatts) {
    const std::string chip = fmt::format("sys/class/hwmon/hwmon{}/", number);
    write(chip + "name", "power_meter\n");
    write(chip + "power1_average", microwatts);
  }

  ::ceems::testing::TempDir dir_;
  ::ceems::testing::FakeClock clock_;
};

TEST_F(Meters, ReadAnAcpiPowerMeter) {
  write("sys/class/hwmon/hwmon0/name", "coretemp\n");
  write_power(1, "250500000\n");
  const auto meter = open("hwmon");
  EXPECT_EQ(meter->read().value(), std::optional(250.5));
  write_power(1, "4294967295000\n");  // what firmware without a reading says
  EXPECT_THAT(meter->read().error().message, HasSubstr("expected watts above 0 and up to 100000"));
  write_power(1, "0\n");
  EXPECT_FALSE(meter->read());
  write_power(2, "90000000\n");
  EXPECT_THAT(open_error(options("hwmon")),
              HasSubstr("2 power meters, of which some may be parts"));
  const std::string named =
      "hwmon:" + (dir_.path() / "sys/class/hwmon/hwmon2/power1_average").string();
  EXPECT_EQ(open(named)->read().value(), std::optional(90.0));
}

TEST_F(Meters, ReadThePlatformCounter) {
  const std::string zone = "sys/class/powercap/intel-rapl:1/";
  write(zone + "name", "psys\n");
  write(zone + "max_energy_range_uj", "1000000000\n");
  write(zone + "energy_uj", "900000000\n");
  const auto meter = open("psys");
  EXPECT_EQ(meter->read().value(), std::nullopt);
  clock_.advance(std::chrono::seconds(2));
  write(zone + "energy_uj", "100000000\n");  // it wrapped: 200 J in 2 s
  EXPECT_EQ(meter->read().value(), std::optional(100.0));
  clock_.advance(std::chrono::seconds(1));
  EXPECT_FALSE(meter->read()) << "a counter that stands still does not count";
  EXPECT_EQ(meters_of_node(options("")), std::vector<std::string>{"psys"});
}

TEST_F(Meters, ReadTheFileOfAWattmeterAtTheEnd) {
  write("watts.csv", "time,watts\n2026-01-01T00:00:02Z,201.5\n# note\n\n1767225601,200\n");
  MeterOptions csv = options("csv:" + (dir_.path() / "watts.csv").string());
  csv.csv_offset = 10;
  const auto meter = open_meter(csv, clock_).value();
  EXPECT_EQ(meter->read().value(), std::nullopt);
  const auto readings = meter->late().value();
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_DOUBLE_EQ(readings[0].time, 1767225611);
  EXPECT_DOUBLE_EQ(readings[0].watts, 200);
  EXPECT_DOUBLE_EQ(readings[1].time, 1767225612);
}

TEST(CsvReadings, NameTheLine) {
  const auto error = [](std::string_view text) {
    return parse_csv_readings(text, 0).error().message;
  };
  EXPECT_EQ(parse_csv_readings("5;100\r\n", 0).value().front().watts, 100);
  EXPECT_EQ(error("1,5\nnoon,5"), "line 2: expected 'time,watts', got 'noon,5'");
  EXPECT_EQ(error("1,5\n2"), "line 2: expected 'time,watts', got '2'");
  EXPECT_EQ(error("1,nan"), "line 1: expected watts above 0 and up to 100000, got nan");
  EXPECT_EQ(error("1,-3"), "line 1: expected watts above 0 and up to 100000, got -3");
  EXPECT_EQ(error("time,watts"), "no readings");
  EXPECT_EQ(error(""), "no readings");
}

TEST_F(Meters, AreRefusedInWords) {
  EXPECT_EQ(open_error(options("volts")),
            "--meter: expected ipmi, redfish, hwmon[:FILE], psys, csv:FILE or prometheus, got "
            "'volts'");
  EXPECT_THAT(open_error(options("csv:")), HasSubstr("--meter: expected"));
  EXPECT_EQ(open_error(options("prometheus")), "--meter prometheus needs --meter.url");
  MeterOptions no_query = options("prometheus");
  no_query.url = "http://localhost:1";
  EXPECT_EQ(open_error(no_query), "--meter prometheus needs --meter.query");
  EXPECT_THAT(open_error(options("redfish")), HasSubstr("--meter redfish needs --meter.url"));
  EXPECT_THAT(open_error(options("hwmon")), HasSubstr("no ACPI power meter below"));
  EXPECT_NE(open_error(options("psys")), "");
  EXPECT_NE(open_error(options("ipmi")), "");
  EXPECT_EQ(meters_of_node(options("")), std::vector<std::string>());
}

TEST(RedfishWatts, ReadsThreeResources) {
  EXPECT_EQ(redfish_watts(R"({"PowerControl":[{},{"PowerConsumedWatts":344}]})").value(), 344);
  EXPECT_EQ(redfish_watts(R"({"PowerWatts":{"Reading":344.5}})").value(), 344.5);
  EXPECT_EQ(redfish_watts(R"({"Reading":344})").value(), 344);
  for (const char* text :
       {"{}", R"({"PowerControl":null})", R"({"Reading":"344"})", R"({"Reading":true})",
        R"({"PowerControl":[3]})", R"({"PowerWatts":5})"}) {
    EXPECT_THAT(redfish_watts(text).error().message, HasSubstr("has no PowerControl[]")) << text;
  }
  EXPECT_FALSE(redfish_watts(R"({"Reading":0})"));
  EXPECT_EQ(redfish_watts("[]").error().message, "expected a JSON object");
  EXPECT_EQ(redfish_watts("{").error().message, "expected a JSON object");
}

TEST(IsIndependent, KnowsTheWaysToOneBmc) {
  const auto from = [](const char* meter, const char* kind, const char* domain = "node") {
    return is_independent(meter, {{.domain = domain, .kind = kind, .method = "measured"}});
  };
  EXPECT_FALSE(from("ipmi", "ipmi_dcmi"));
  EXPECT_FALSE(from("redfish", "ipmi_dcmi"));
  EXPECT_FALSE(from("hwmon:/x", "redfish"));
  EXPECT_FALSE(from("psys", "rapl"));
  EXPECT_TRUE(from("psys", "rapl", "package"));
  EXPECT_TRUE(from("ipmi", "rapl", "package"));
  EXPECT_TRUE(from("ipmi", "power-model"));
  EXPECT_TRUE(from("csv:/x", "ipmi_dcmi"));
  EXPECT_TRUE(from("prometheus", "redfish"));
}

}  // namespace
}  // namespace ceems::tool::validate
