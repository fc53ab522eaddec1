#include "facility/options.h"

#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::facility {
namespace {

Result<FacilityOptions> read_yaml(const std::string& text) {
  const auto document = config::parse_yaml(text, "facility.yml");
  return read_facility(*document, "/etc/ceems", TimeZone());
}

std::string error_of(const std::string& text) {
  const auto options = read_yaml(text);
  return options ? "" : options.error().message;
}

TEST(Facility, ReadsMetersFactorsAndFields) {
  const auto options = read_yaml(R"(
meters:
  - {kind: total, name: main, csv: main.csv, every: 15m}
  - {kind: it, counter: 'it_joules_total{room="1"}', cluster: hpc, scale: 2.5e-7}
  - {kind: cooling, power: sum(chiller_watts)}
transmission_losses:
  - {from: 2026-01-01, to: 2026-12-31, g_kwh: 21, source: "agency, table 3", date: 2026-05}
declared: {floor_area_m2: 420}
)");
  ASSERT_TRUE(options) << options.error().message;
  ASSERT_EQ(options->meters.size(), 3U);
  EXPECT_EQ(options->meters[0].file, "/etc/ceems/main.csv");
  EXPECT_EQ(options->meters[0].every_ms, 15 * kMinuteMs);
  EXPECT_EQ(options->meters[0].hourly_query(), "");
  EXPECT_EQ(options->meters[1].hourly_query(),
            "sum(increase(it_joules_total{room=\"1\"}[1h])) * 2.5e-07");
  EXPECT_EQ(options->meters[1].name, "it");
  EXPECT_EQ(options->meters[2].hourly_query(),
            "avg_over_time((sum(chiller_watts))[1h:1m]) * 0.001");
  ASSERT_EQ(options->losses.size(), 1U);
  EXPECT_EQ(options->losses[0].to_ms - options->losses[0].from_ms, 365 * kDayMs);
  EXPECT_EQ(options->declared_value("floor_area_m2"), 420);
  EXPECT_EQ(options->declared_value("incoming_eb"), std::nullopt);
}

TEST(Facility, RefusesWrongFilesWithTheLine) {
  EXPECT_TRUE(error_of("meter: []\n").starts_with("facility.yml:1: ")) << error_of("meter: []\n");
  EXPECT_EQ(error_of("meters:\n  - {kind: gas, csv: x}\n"),
            "facility.yml:2: meters[0].kind: expected total, it, cooling, water, heat_reused or "
            "renewable");
  EXPECT_EQ(error_of("meters:\n  - {kind: it, csv: x, power: y}\n"),
            "facility.yml:2: meters[0].csv: expected exactly one of csv, counter and power");
  EXPECT_EQ(error_of("meters:\n  - {kind: it}\n"),
            "facility.yml:2: meters[0]: expected exactly one of csv, counter and power");
  EXPECT_EQ(error_of("meters:\n  - {kind: it, csv: x, every: 7m}\n"),
            "facility.yml:2: meters[0].every: expected 1d, 1h, or minutes that divide an hour");
  EXPECT_EQ(error_of("meters:\n  - {kind: water, power: y}\n"),
            "facility.yml:2: meters[0].power: water is not energy: expected csv or counter");
  EXPECT_EQ(error_of("meters:\n  - {kind: it, counter: y, scale: -1}\n"),
            "facility.yml:2: meters[0].scale: expected a number above 0");
  EXPECT_EQ(
      error_of("transmission_losses:\n  - {g_kwh: 1}\n"),
      "facility.yml:2: transmission_losses[0]: expected one line on where the factor is from");
  EXPECT_TRUE(error_of("declared: {floor: 1}\n").starts_with("facility.yml:1: "));
}

}  // namespace
}  // namespace ceems::facility
