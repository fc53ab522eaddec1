#include "exporter/ipmi/sdr.h"

#include <cmath>

#include <gtest/gtest.h>

#include "exporter/ipmi/fake_bmc.h"

namespace ceems::exporter::ipmi {
namespace {

/// The value of a raw reading of a sensor with this record.
double value(const RecordParts& parts, std::uint8_t raw) {
  const auto sensor = parse_sensor(full_record(parts));
  EXPECT_TRUE(sensor);
  return convert(*sensor, sensor->factors, raw).value_or(std::nan(""));
}

TEST(SensorRecord, OfTheFullKindHasFactorsAndUnits) {
  const auto sensor = parse_sensor(full_record({.number = 0x77,
                                                .name = "PSU1 Input Power",
                                                .m = -3,
                                                .b = 511,
                                                .b_exponent = -8,
                                                .r_exponent = 7,
                                                .lun = 2}));
  ASSERT_TRUE(sensor);
  EXPECT_EQ(sensor->owner, 0x20);
  EXPECT_EQ(sensor->lun, 2);
  EXPECT_EQ(sensor->number, 0x77);
  EXPECT_EQ(sensor->name, "PSU1 Input Power");
  EXPECT_EQ(sensor->units, "Watts");
  EXPECT_TRUE(sensor->is_power_or_energy());
  EXPECT_EQ(sensor->format, AnalogFormat::kUnsigned);
  EXPECT_EQ(sensor->factors, (Factors{.m = -3, .b = 511, .b_exponent = -8, .r_exponent = 7}));
  const auto lowest = parse_sensor(full_record({.m = -512, .b = -512, .b_exponent = 7}));
  EXPECT_EQ(lowest->factors, (Factors{.m = -512, .b = -512, .b_exponent = 7, .r_exponent = 0}));
}

TEST(SensorRecord, OfTheCompactKindHasNoAnalogReading) {
  const auto sensor = parse_sensor(compact_record(9, "PSU Redundancy"));
  ASSERT_TRUE(sensor);
  EXPECT_EQ(sensor->number, 9);
  EXPECT_EQ(sensor->name, "PSU Redundancy");
  EXPECT_EQ(sensor->format, AnalogFormat::kNone);
  EXPECT_EQ(convert(*sensor, sensor->factors, 5), std::nullopt);
}

TEST(SensorRecord, IsNotWhatEventsAndLocatorsHave) {
  const auto event = parse_sensor(event_record(4, "Watchdog"));
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().message, "expected a full or compact sensor record, got type 0x03");
  EXPECT_FALSE(describes_sensor(0x03));
  EXPECT_FALSE(describes_sensor(0x12));
  EXPECT_FALSE(describes_sensor(0xC0));
}

TEST(SensorRecord, MayBeCutAnywhere) {
  for (const Bytes& whole : {full_record({.name = "Power"}), compact_record(1, "Power")}) {
    const std::size_t needed = whole[3] == 1 ? 48 : 32;
    for (std::size_t size = 0; size <= whole.size(); ++size) {
      Bytes cut = whole;
      cut.resize(size);
      EXPECT_EQ(parse_sensor(cut).has_value(), size >= needed) << size;
      if (size >= 5) {
        Bytes shorter = whole;  // says so itself
        shorter[4] = static_cast<std::uint8_t>(size - 5);
        EXPECT_EQ(parse_sensor(shorter).has_value(), size >= needed) << size;
      }
    }
  }
  Bytes longer = full_record({.name = "abc"});
  longer[47] = 0xDF;  // a name of 31 characters
  longer[4] = 0xff;
  EXPECT_EQ(parse_sensor(longer)->name, "abc");
}

TEST(SensorRecord, HasNamesInFourEncodings) {
  const auto name = [](std::uint8_t head, const Bytes& data) {
    Bytes record = full_record({.name = ""});
    record[47] = head;
    record.insert(record.end(), data.begin(), data.end());
    record[4] = static_cast<std::uint8_t>(record.size() - 5);
    return parse_sensor(record)->name;
  };
  EXPECT_EQ(name(0xC5, {'F', 'a', 'n', 0xB0, 0xFC}), "Fan\u00b0\u00fc");
  EXPECT_EQ(name(0xC5, {'F', 'a', 'n', 0, 'x'}), "Fan");
  EXPECT_EQ(name(0x03, {'S', 'y', 's'}), "Sys");
  EXPECT_EQ(name(0x45, {0x12, 0xC3, 0x40}), "12.34");  // BCD plus
  // The example of the standard for packed ASCII: "IPMI" is 29 DC A6.
  EXPECT_EQ(name(0x84, {0x29, 0xDC, 0xA6}), "IPMI");
  EXPECT_EQ(name(0x88, {0x29, 0xDC, 0xA6}), "IPMI") << "cut";
  EXPECT_EQ(name(0xC4, {' ', 'A', '\n', ' '}), "A");
  EXPECT_EQ(name(0xC3, {'a', 0x1b, 'b'}), "a\\x1bb");
  EXPECT_EQ(name(0xC0, {}), "sensor 1") << "no name";
}

TEST(SensorRecord, HasTheUnitsOfTheStandard) {
  const auto units = [](std::uint8_t units1, std::uint8_t base, std::uint8_t modifier) {
    Bytes record = full_record({.unit = base, .units1 = units1});
    record[22] = modifier;
    return parse_sensor(record)->units;
  };
  EXPECT_EQ(units(0, 7, 0), "Joules");
  EXPECT_EQ(units(0, 1, 0), "degrees C");
  EXPECT_EQ(units(0, 18, 0), "RPM");
  EXPECT_EQ(units(0, 92, 0), "grams");
  EXPECT_EQ(units(0, 93, 0), "unknown");
  EXPECT_EQ(units(0x02, 7, 22), "Joules/seconds");
  EXPECT_EQ(units(0x04, 6, 24), "Watts*hours");
  EXPECT_EQ(units(0x18, 7, 0), "Joules/second");
  EXPECT_EQ(units(0x01, 6, 0), "% Watts");
  EXPECT_FALSE(parse_sensor(full_record({.units1 = 1}))->is_power_or_energy());
  EXPECT_TRUE(parse_sensor(full_record({.unit = 7}))->is_power_or_energy());
  EXPECT_FALSE(parse_sensor(full_record({.unit = 4}))->is_power_or_energy());
}

TEST(SensorValue, FollowsTheFormulaOfTheStandard) {
  EXPECT_DOUBLE_EQ(value({.m = 4}, 100), 400);
  EXPECT_DOUBLE_EQ(value({.m = 4, .r_exponent = -2}, 84), 3.36);
  EXPECT_DOUBLE_EQ(value({.m = 2, .b = 5, .b_exponent = 2, .r_exponent = -1}, 10), 52);
  EXPECT_DOUBLE_EQ(value({.m = -1, .b = 255}, 55), 200);
  EXPECT_DOUBLE_EQ(value({.m = 1, .r_exponent = 7}, 255), 2.55e9);
}

TEST(SensorValue, ReadsNumbersOfThreeFormats) {
  EXPECT_EQ(value({.units1 = 0x00}, 0xFF), 255);
  EXPECT_EQ(value({.units1 = 0x40}, 0xFE), -1) << "ones' complement";
  EXPECT_EQ(value({.units1 = 0x40}, 0xFF), 0);
  EXPECT_EQ(value({.units1 = 0x40}, 0x80), -127);
  EXPECT_EQ(value({.units1 = 0x40}, 0x7F), 127);
  EXPECT_EQ(value({.units1 = 0x80}, 0xFF), -1) << "two's complement";
  EXPECT_EQ(value({.units1 = 0x80}, 0x80), -128);
  EXPECT_TRUE(std::isnan(value({.units1 = 0xC0}, 1))) << "no analog reading";
}

TEST(SensorValue, IsLinearized) {
  const auto of = [](std::uint8_t linearization, std::uint8_t raw) {
    return value({.linearization = linearization}, raw);
  };
  EXPECT_DOUBLE_EQ(of(1, 10), std::log(10.0));
  EXPECT_DOUBLE_EQ(of(2, 100), 2);
  EXPECT_DOUBLE_EQ(of(3, 8), 3);
  EXPECT_DOUBLE_EQ(of(4, 2), std::exp(2.0));
  EXPECT_DOUBLE_EQ(of(5, 3), 1000);
  EXPECT_DOUBLE_EQ(of(6, 5), 32);
  EXPECT_DOUBLE_EQ(of(7, 4), 0.25);
  EXPECT_DOUBLE_EQ(of(8, 9), 81);
  EXPECT_DOUBLE_EQ(of(9, 3), 27);
  EXPECT_DOUBLE_EQ(of(10, 144), 12);
  EXPECT_DOUBLE_EQ(of(11, 64), 4);
  EXPECT_TRUE(std::isnan(of(7, 0))) << "1/0 is not exported";
  EXPECT_TRUE(std::isnan(of(1, 0))) << "nor the logarithm of 0";
  EXPECT_TRUE(std::isnan(value({.linearization = 5, .m = 511, .r_exponent = 7}, 255)));
}

TEST(SensorReadings, RefuseWhatIsNoReading) {
  EXPECT_EQ(parse_reading(Bytes{0x00, 0x54, 0xC0, 0x00}), 0x54);
  const auto refused = [](const Bytes& answer) { return parse_reading(answer).error().message; };
  EXPECT_EQ(refused({}), "expected a completion code, got an empty answer");
  EXPECT_EQ(refused({0xCB}), "completion code 0xcb: the BMC does not have this sensor or record");
  EXPECT_EQ(refused({0x00, 0x54}), "expected a reading of at least 3 bytes, got 2");
  EXPECT_EQ(refused({0x00, 0x54, 0x80}), "the sensor has no reading at present (state 0x80)");
  EXPECT_EQ(refused({0x00, 0x54, 0xE0}), "the sensor has no reading at present (state 0xe0)");
}

TEST(SensorFactors, AreReadFromTheirAnswer) {
  EXPECT_EQ(parse_factors(Bytes{0x00, 0x10, 0x04, 0x00, 0x00, 0x00, 0x00, 0xe0}),
            (Factors{.m = 4, .b = 0, .b_exponent = 0, .r_exponent = -2}));
  EXPECT_FALSE(parse_factors(Bytes{0x00, 0x10, 0x04}));
  EXPECT_FALSE(parse_factors(Bytes{0xC1}));
}

}  // namespace
}  // namespace ceems::exporter::ipmi
