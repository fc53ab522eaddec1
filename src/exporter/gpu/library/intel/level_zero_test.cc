#include "exporter/gpu/library/intel/level_zero.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/library/fake_scenario.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

/// A card with two tiles, and graphics of the processor.
FakeScenario::Values ponte_vecchio() {
  return {{"count", "2"},           {"time", "1000000"},
          {"0.bus", "0"},           {"0.slot", "2"},
          {"1.bus", "58"},          {"1.powers", "3"},
          {"1.limit", "600000"},    {"1.energy2", "5000000"},
          {"1.engines", "3"},       {"1.engine_kind0", "1"},
          {"1.engine_tile1", "1"},  {"1.engine_tile2", "1"},
          {"1.active1", "100"},     {"1.active2", "200"},
          {"1.memories", "2"},      {"1.size0", "1000"},
          {"1.free0", "400"},       {"1.size1", "1000"},
          {"1.free1", "1000"},      {"1.sensors", "3"},
          {"1.sensor_kind0", "1"},  {"1.celsius0", "40.5"},
          {"1.sensor_kind1", "1"},  {"1.celsius1", "42"},
          {"1.sensor_kind2", "2"},  {"1.celsius2", "50"},
          {"1.frequencies", "2"},   {"1.megahertz0", "1550"},
          {"1.reasons0", "8"},      {"1.frequency_kind1", "1"},
          {"1.megahertz1", "3200"}, {"1.sent", "11"},
          {"1.received", "22"},     {"1.processes", "10:512"},
          {"1.name", "Max 1550"},   {"1.ports", "2"},
          {"1.link_sent0", "5"},    {"1.link_sent1", "6"},
          {"1.link_received1", "7"}};
}

std::unique_ptr<GpuLibrary> load_level_zero() {
  auto library = load_library(Vendor::kIntel, CEEMS_FAKE_LEVEL_ZERO);
  EXPECT_TRUE(library) << library.error().message;
  return library ? *std::move(library) : nullptr;
}

std::vector<DeviceState> read_level_zero(GpuLibrary& library) {
  auto devices = library.read(true);
  EXPECT_TRUE(devices) << devices.error().message;
  return devices ? *std::move(devices) : std::vector<DeviceState>{};
}

TEST(LevelZero, ReadsADevice) {
  FakeScenario scenario(ponte_vecchio());
  const auto library = load_level_zero();
  ASSERT_TRUE(library->start());
  const auto first = read_level_zero(*library);
  ASSERT_THAT(first, SizeIs(1)) << "graphics of the processor is not a GPU";
  EXPECT_FALSE(first[0].power_watts) << "known from the second reading on";
  EXPECT_FALSE(first[0].utilisation);
  scenario.set("time", "3000000");
  scenario.set("1.energy2", "605000000");
  scenario.set("1.active1", "1000100");
  scenario.set("1.active2", "200");
  const DeviceState gpu = read_level_zero(*library)[0];
  EXPECT_EQ(gpu.vendor, Vendor::kIntel);
  EXPECT_EQ(gpu.name, "Max 1550");
  EXPECT_EQ(gpu.link.sent_bytes, 11);
  EXPECT_EQ(gpu.link.received_bytes, 7);
  EXPECT_EQ(gpu.uuid, "0000:3a:00.0");
  EXPECT_EQ(gpu.energy_joules, 605);
  EXPECT_EQ(gpu.power_watts, 300);
  EXPECT_EQ(gpu.power_limit_watts, 600);
  EXPECT_EQ(gpu.utilisation, 0.25) << "mean of the tiles";
  EXPECT_EQ(gpu.memory_total_bytes, 2000);
  EXPECT_EQ(gpu.memory_used_bytes, 600);
  EXPECT_EQ(gpu.temperature_celsius, 42) << "the hottest";
  EXPECT_EQ(gpu.memory_temperature_celsius, 50);
  EXPECT_THAT(gpu.clocks_hertz, ElementsAre(Pair("graphics", 1550e6), Pair("memory", 3200e6)));
  EXPECT_THAT(gpu.clock_reasons, Contains(Pair("hardware_thermal", true)));
  EXPECT_EQ(gpu.pcie.sent_bytes, 11);
  EXPECT_EQ(gpu.pcie.received_bytes, 22);
  ASSERT_THAT(gpu.processes, SizeIs(1));
  EXPECT_EQ(gpu.processes[0].memory_bytes, 512);
}

TEST(LevelZero, DecreasingCountersYieldNoPower) {
  FakeScenario scenario(ponte_vecchio());
  const auto library = load_level_zero();
  ASSERT_TRUE(library->start());
  read_level_zero(*library);
  scenario.set("time", "2000000");
  scenario.set("1.energy2", "1");
  scenario.set("1.active1", "0");
  scenario.set("1.active2", "0");
  const auto devices = read_level_zero(*library);
  EXPECT_FALSE(devices[0].power_watts);
  EXPECT_FALSE(devices[0].utilisation);
}

TEST(LevelZero, SurvivesGarbage) {
  FakeScenario scenario(ponte_vecchio());
  scenario.set("1.celsius0", "nan");
  scenario.set("1.celsius1", "-5");
  scenario.set("1.megahertz0", "inf");
  scenario.set("1.free0", "18446744073709551615");
  scenario.set("1.engines", "4000000000");
  scenario.set("process_count", "4294967295");
  scenario.set("1.processes", "4294967295:1");
  const auto library = load_level_zero();
  ASSERT_TRUE(library->start());
  const auto devices = read_level_zero(*library);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_FALSE(devices[0].temperature_celsius);
  EXPECT_EQ(devices[0].memory_total_bytes, 1000);
  EXPECT_THAT(devices[0].processes, IsEmpty());
}

TEST(LevelZero, ReportsWhyItDoesNotStart) {
  FakeScenario scenario(FakeScenario::Values{{"zesInit", "2013265921"}});
  const auto library = load_level_zero();
  const auto failed = library->start();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "zesInit returned 0x78000001");
  scenario.erase("zesInit");
  scenario.set("drivers", "2147483648");
  EXPECT_FALSE(library->start());
  EXPECT_FALSE(library->read(true));
}

}  // namespace
}  // namespace ceems::exporter::gpu
