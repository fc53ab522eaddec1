#include "exporter/ipmi/sensor_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/ipmi/fake_bmc.h"
#include "testing/fake_clock.h"

namespace ceems::exporter::ipmi {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Sensors : public ::testing::Test {
 protected:
  Sensors() {
    bmc_.add(event_record(1, "Watchdog"));
    bmc_.add(full_record({.number = 0x40, .name = "PSU2", .m = 2}));
    bmc_.add(full_record({.number = 0x21, .name = "Fan 1", .unit = 18, .m = 50}));
    bmc_.add(compact_record(0x30, "PSU state"));
    bmc_.add(full_record({.number = 0x20, .name = "PSU1", .m = 2}));
    bmc_.add(full_record({.number = 0x10, .name = "Energy", .unit = 7, .r_exponent = 3}));
    bmc_.add(full_record({.number = 0x11, .name = "Satellite", .owner = 0x2C}));
    bmc_.set_raw(0x40, 100);
    bmc_.set_raw(0x21, 90);
    bmc_.set_raw(0x20, 110);
    bmc_.set_raw(0x10, 5);
    bmc_.set_raw(0x11, 1);
  }
  SensorReader reader(SensorSelection selection) {
    return {std::make_unique<Device>(
                [this]() -> Result<std::unique_ptr<Port>> {
                  if (missing_) {
                    return fail(ErrorCode::kNotFound, "no IPMI device");
                  }
                  return bmc_.port();
                },
                std::chrono::milliseconds(100)),
            std::move(selection), minutes(5), clock_};
  }

  /// The readings without their times.
  static std::vector<SensorReading> values_of(SensorReader& sensors) {
    auto readings = sensors.read({}).value();
    for (SensorReading& reading : readings) {
      reading.time = {};
    }
    return readings;
  }

  testing::FakeClock clock_;
  FakeBmc bmc_;
  bool missing_ = false;
};

TEST_F(Sensors, OfPowerAndEnergyAreSortedByNumber) {
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_THAT(values_of(sensors), ElementsAre(SensorReading{"Energy", "Joules", 5000},
                                              SensorReading{"PSU1", "Watts", 220},
                                              SensorReading{"PSU2", "Watts", 200}));
}

TEST_F(Sensors, ThatAreNamedByNumberCountOnce) {
  auto sensors = reader({.power_and_energy = true, .numbers = {0x21, 0x20, 0x20}});
  EXPECT_THAT(
      values_of(sensors),
      ElementsAre(SensorReading{"Energy", "Joules", 5000}, SensorReading{"PSU1", "Watts", 220},
                  SensorReading{"Fan 1", "RPM", 4500}, SensorReading{"PSU2", "Watts", 200}));
  auto fan = reader({.numbers = {0x21}});
  EXPECT_THAT(values_of(fan), ElementsAre(SensorReading{"Fan 1", "RPM", 4500}));
}

TEST_F(Sensors, WithoutAnalogReadingsAreLeftOut) {
  auto sensors = reader({.numbers = {0x30, 0x01, 0x11, 0x99}});
  const auto readings = sensors.read({});
  ASSERT_FALSE(readings);
  EXPECT_EQ(readings.error().message, "the BMC has none of the selected sensors");
  EXPECT_THAT(sensors.sensors(), IsEmpty());
}

TEST_F(Sensors, WithTheSameNameAreToldApart) {
  bmc_.add(full_record({.number = 0x41, .name = "PSU2"}));
  bmc_.add(
      full_record({.number = 0x40, .name = "PSU2 again"}));  // a number twice: the first counts
  bmc_.set_raw(0x41, 7);
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_THAT(
      values_of(sensors),
      ElementsAre(SensorReading{"Energy", "Joules", 5000}, SensorReading{"PSU1", "Watts", 220},
                  SensorReading{"PSU2", "Watts", 200}, SensorReading{"PSU2 #65", "Watts", 7}));
}

TEST_F(Sensors, AreReadInPartsThatTheBmcCanReturn) {
  for (const std::size_t largest : {255U, 31U, 20U, 8U}) {
    bmc_.set_largest_part(largest);
    auto sensors = reader({.power_and_energy = true, .numbers = {}});
    EXPECT_EQ(sensors.read({}).value().size(), 3U) << largest;
  }
  bmc_.set_largest_part(4);
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_THAT(sensors.read({}).error().message,
              HasSubstr("record 0: completion code 0xca: the BMC cannot return that many bytes"));
}

TEST_F(Sensors, AreListedAlthoughReservationsAreCancelled) {
  bmc_.cancel_reservations(3);
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_EQ(sensors.read({}).value().size(), 3U);
  bmc_.cancel_reservations(1000);
  auto others = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_THAT(others.read({}).error().message,
              HasSubstr("the reservation of the sensor records was cancelled"));
  EXPECT_LE(bmc_.requests(0x0a, 0x22), 13) << "it gives up";
}

TEST_F(Sensors, AreListedEvenIfTheListIsACircle) {
  bmc_.set_end(2);
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_EQ(sensors.read({}).value().size(), 3U);
}

TEST_F(Sensors, KeepTheirLastGoodReadingForFiveMinutes) {
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_EQ(sensors.read({}).value().size(), 3U);
  bmc_.set_reading(0x20, {0x00, 0x00, 0x20});  // no reading at present
  bmc_.set_raw(0x40, 0);
  clock_.advance(minutes(4));
  EXPECT_THAT(values_of(sensors), ElementsAre(SensorReading{"Energy", "Joules", 5000},
                                              SensorReading{"PSU1", "Watts", 220}))
      << "0 W is a reading, and is not exported";
  clock_.advance(minutes(2));
  EXPECT_THAT(values_of(sensors), ElementsAre(SensorReading{"Energy", "Joules", 5000}));
  bmc_.set_raw(0x20, 1);
  EXPECT_THAT(values_of(sensors), ElementsAre(SensorReading{"Energy", "Joules", 5000},
                                              SensorReading{"PSU1", "Watts", 2}));
}

TEST_F(Sensors, AreListedAgainWhenTheRepositoryChanges) {
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  EXPECT_EQ(sensors.read({}).value().size(), 3U);
  const int records = bmc_.requests(0x0a, 0x23);
  clock_.advance(minutes(11));
  EXPECT_EQ(sensors.read({}).value().size(), 3U);
  EXPECT_EQ(bmc_.requests(0x0a, 0x23), records) << "nothing changed";
  bmc_.add(full_record({.number = 0x50, .name = "PSU3"}));
  bmc_.set_raw(0x50, 9);
  EXPECT_EQ(sensors.read({}).value().size(), 3U) << "looked at every ten minutes";
  clock_.advance(minutes(11));
  const auto readings = sensors.read({}).value();
  ASSERT_EQ(readings.size(), 4U);
  EXPECT_EQ(readings.back(), (SensorReading{"PSU3", "Watts", 9, clock_.steady_now()}));
}

TEST_F(Sensors, AskForTheFactorsOfNonlinearReadings) {
  bmc_.add(full_record({.number = 0x60, .name = "Odd", .linearization = 0x70, .m = 1}));
  bmc_.set_raw(0x60, 10);
  auto sensors = reader({.numbers = {0x60}});
  EXPECT_THAT(sensors.read({}).error().message, HasSubstr("sensor Odd: completion code 0xc1"));
  bmc_.set_factors({0x00, 0x0b, 0x05, 0x00, 0x02, 0x00, 0x00, 0x01});  // 5 x + 2 * 10
  EXPECT_THAT(values_of(sensors), ElementsAre(SensorReading{"Odd", "Watts", 70}));
}

TEST_F(Sensors, SurviveABmcThatIsSilentOrGone) {
  auto sensors = reader({.power_and_energy = true, .numbers = {}});
  missing_ = true;
  EXPECT_EQ(sensors.read({}).error().message, "list of sensors: no IPMI device");
  missing_ = false;
  bmc_.set_silent(true);
  EXPECT_EQ(sensors.read({}).error().code, ErrorCode::kTimeout);
  bmc_.set_silent(false);
  EXPECT_EQ(sensors.read({}).value().size(), 3U);
  bmc_.set_silent(true);
  const int before = bmc_.requests(0x04, 0x2d);
  EXPECT_EQ(sensors.read({}).error().code, ErrorCode::kTimeout);
  EXPECT_EQ(bmc_.requests(0x04, 0x2d), before + 1) << "one timeout is enough";
}

}  // namespace
}  // namespace ceems::exporter::ipmi
