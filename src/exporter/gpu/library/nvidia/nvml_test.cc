#include "exporter/gpu/library/nvidia/nvml.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "exporter/gpu/library/fake_scenario.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

/// An H100 that supports everything.
FakeScenario::Values h100() {
  return {{"count", "1"},
          {"0.uuid", "GPU-aaaa"},
          {"0.name", "NVIDIA H100 80GB HBM3"},
          {"0.pci", "00000000:3B:00.0"},
          {"0.minor", "3"},
          {"0.power", "75500"},
          {"0.power_limit", "700000"},
          {"0.energy", "123456789"},
          {"0.utilization", "42"},
          {"0.memory_utilization", "7"},
          {"0.memory_used", "1073741824"},
          {"0.memory_total", "85899345920"},
          {"0.temperature", "38"},
          {"0.clock0", "1980"},
          {"0.clock2", "2619"},
          {"0.reasons", "68"},
          {"0.ecc0", "3"},
          {"0.ecc1", "0"},
          {"0.field82", "44"},
          {"0.field138", "10"},
          {"0.field139", "20"},
          {"0.field197", "1000"},
          {"0.field198", "2000"},
          {"0.gpm", "1"},
          {"0.gpm2", "50"},
          {"0.gpm3", "25.5"},
          {"0.gpm5", "12"},
          {"0.gpm10", "80"},
          {"0.gpm11", "nan"},
          {"0.gpm12", "-4"},
          {"0.processes", "100:1048576 200:2097152"},
          {"0.process_utilization", "100:30 300:5"}};
}

std::unique_ptr<GpuLibrary> load_nvml(const char* path = CEEMS_FAKE_NVML) {
  auto library = load_library(Vendor::kNvidia, path);
  EXPECT_TRUE(library) << library.error().message;
  return library ? *std::move(library) : nullptr;
}

std::vector<DeviceState> read_nvml(GpuLibrary& library, bool everything = true) {
  auto devices = library.read(everything);
  EXPECT_TRUE(devices) << devices.error().message;
  return devices ? *std::move(devices) : std::vector<DeviceState>{};
}

TEST(Nvml, ReadsADevice) {
  const FakeScenario scenario(h100());
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(1));
  const DeviceState& gpu = devices[0];
  EXPECT_EQ(gpu.uuid, "GPU-aaaa");
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(to_string(gpu.address.value_or(PciAddress{})), "0000:3b:00.0");
  EXPECT_EQ(gpu.driver_minor, 3U);
  EXPECT_EQ(gpu.power_watts, 75.5);
  EXPECT_EQ(gpu.power_limit_watts, 700);
  EXPECT_DOUBLE_EQ(gpu.energy_joules.value_or(0), 123456.789);
  EXPECT_EQ(gpu.utilisation, 0.42);
  EXPECT_EQ(gpu.memory_utilisation, 0.07);
  EXPECT_EQ(gpu.memory_used_bytes, 1073741824);
  EXPECT_EQ(gpu.memory_total_bytes, 85899345920);
  EXPECT_EQ(gpu.temperature_celsius, 38);
  EXPECT_EQ(gpu.memory_temperature_celsius, 44);
  EXPECT_THAT(gpu.clocks_hertz, ElementsAre(Pair("graphics", 1980e6), Pair("memory", 2619e6)));
  EXPECT_THAT(gpu.clock_reasons, Contains(Pair("power_cap", true)));
  EXPECT_THAT(gpu.clock_reasons, Contains(Pair("hardware_thermal", true)));
  EXPECT_THAT(gpu.clock_reasons, Contains(Pair("idle", false)));
  EXPECT_EQ(gpu.ecc_corrected, 3);
  EXPECT_EQ(gpu.ecc_uncorrected, 0);
  EXPECT_EQ(gpu.link.sent_bytes, 10240);
  EXPECT_EQ(gpu.link.received_bytes, 20480);
  EXPECT_EQ(gpu.pcie.sent_bytes, 1000);
  EXPECT_EQ(gpu.pcie.received_bytes, 2000);
  EXPECT_FALSE(gpu.split);
}

TEST(Nvml, ReadsProcessesAndTheirUse) {
  const FakeScenario scenario(h100());
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(1));
  const auto& processes = devices[0].processes;
  ASSERT_THAT(processes, SizeIs(3));
  EXPECT_EQ(processes[0].pid, 100);
  EXPECT_EQ(processes[0].memory_bytes, 1048576);
  EXPECT_EQ(processes[0].utilisation, 0.3);
  EXPECT_EQ(processes[1].pid, 200);
  EXPECT_EQ(processes[1].utilisation, 0) << "without a sample it did nothing";
  EXPECT_EQ(processes[2].pid, 300);  // in the samples only
  EXPECT_FALSE(processes[2].memory_bytes);
  EXPECT_EQ(processes[2].utilisation, 0.05);
}

TEST(Nvml, HasGpmMetricsFromTheSecondReadingOn) {
  const FakeScenario scenario(h100());
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  EXPECT_FALSE(read_nvml(*library)[0].activity.sm_active);
  const Activity activity = read_nvml(*library, false)[0].activity;
  EXPECT_EQ(activity.sm_active, 0.5);
  EXPECT_EQ(activity.sm_occupancy, 0.255);
  EXPECT_EQ(activity.tensor, 0.12);
  EXPECT_EQ(activity.dram, 0.8);
  EXPECT_FALSE(activity.fp64) << "not a number";
  EXPECT_FALSE(activity.fp32) << "negative";
  EXPECT_FALSE(activity.fp16) << "not supported";
}

TEST(Nvml, KeepsWhatChangesSlowly) {
  FakeScenario scenario(h100());
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  read_nvml(*library);
  scenario.set("0.temperature", "50");
  scenario.set("0.power", "100000");
  const auto often = read_nvml(*library, false);
  EXPECT_EQ(often[0].temperature_celsius, 38);
  EXPECT_EQ(often[0].power_watts, 100);
  EXPECT_EQ(read_nvml(*library)[0].temperature_celsius, 50);
}

TEST(Nvml, CountsXids) {
  FakeScenario scenario(h100());
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  scenario.set("xids", "0:79 0:13 0:79 7:1");
  read_nvml(*library);
  EXPECT_THAT(read_nvml(*library)[0].xids, ElementsAre(Pair(79, 2), Pair(13, 1)));
}

TEST(Nvml, ReadsPcieRatesWithoutCounters) {
  FakeScenario scenario(h100());
  scenario.erase("0.field197");
  scenario.erase("0.field198");
  scenario.set("0.pcie0", "5");
  scenario.set("0.pcie1", "6");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  EXPECT_FALSE(devices[0].pcie.sent_bytes);
  EXPECT_EQ(devices[0].pcie.sent_bytes_per_second, 5120);
  EXPECT_EQ(devices[0].pcie.received_bytes_per_second, 6144);
}

TEST(Nvml, ReadsMigDevices) {
  FakeScenario scenario(h100());
  scenario.set("0.mig", "1");
  scenario.set("0.mig_places", "7");
  scenario.set("0.0.uuid", "MIG-1");
  scenario.set("0.0.gi", "1");
  scenario.set("0.0.ci", "0");
  scenario.set("0.0.sms", "60");
  scenario.set("0.0.memory_total", "1000");
  scenario.set("0.0.processes", "100:7");
  scenario.set("0.3.uuid", "MIG-2");  // after unused indexes
  scenario.set("0.3.gi", "5");
  scenario.set("0.3.sms", "16");
  scenario.set("0.gi1.gpm2", "90");
  scenario.set("0.gi5.gpm2", "10");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  read_nvml(*library);
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_TRUE(devices[0].split);
  EXPECT_FALSE(devices[0].activity.sm_active) << "the whole GPU has none in MIG mode";
  ASSERT_THAT(devices[0].instances, SizeIs(2));
  const InstanceState& big = devices[0].instances[0];
  EXPECT_EQ(big.uuid, "MIG-1");
  EXPECT_EQ(big.gpu_instance, 1U);
  EXPECT_EQ(big.sm_count, 60U);
  EXPECT_EQ(big.memory_total_bytes, 1000);
  EXPECT_EQ(big.activity.sm_active, 0.9);
  EXPECT_EQ(devices[0].instances[1].gpu_instance, 5U);
  EXPECT_EQ(devices[0].instances[1].activity.sm_active, 0.1);
  ASSERT_THAT(devices[0].processes, SizeIs(1));
  EXPECT_EQ(devices[0].processes[0].gpu_instance, 1U);
}

TEST(Nvml, WorksWithoutOptionalFunctions) {
  const FakeScenario scenario(h100());
  const auto library = load_nvml(CEEMS_FAKE_NVML_MINIMAL);
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].uuid, "GPU-aaaa");
  EXPECT_EQ(devices[0].power_watts, 75.5);
  EXPECT_FALSE(devices[0].energy_joules);
  EXPECT_FALSE(devices[0].memory_total_bytes);
  EXPECT_THAT(devices[0].clock_reasons, IsEmpty());
  EXPECT_THAT(devices[0].processes, IsEmpty());
}

TEST(Nvml, AnErrorOfOneFunctionLosesItsValueOnly) {
  FakeScenario scenario(h100());
  scenario.set("nvmlDeviceGetPowerUsage", "999");
  scenario.set("nvmlDeviceGetMemoryInfo_v2", "3");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_FALSE(devices[0].power_watts);
  EXPECT_EQ(devices[0].memory_total_bytes, 85899345920) << "from the older function";
  EXPECT_EQ(devices[0].utilisation, 0.42);
}

TEST(Nvml, AGpuThatIsLostKeepsItsPlaceAndCounters) {
  FakeScenario scenario(h100());
  scenario.set("count", "2");
  scenario.set("1.uuid", "GPU-bbbb");
  scenario.set("1.power", "1000");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  EXPECT_THAT(read_nvml(*library), SizeIs(2));
  scenario.set("0.nvmlDeviceGetPowerUsage", "15");
  scenario.set("xids", "0:79");
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_THAT(devices[0].lost, HasSubstr("fallen off the bus (15); look for Xid"));
  EXPECT_DOUBLE_EQ(devices[0].energy_joules.value_or(0), 123456.789);
  EXPECT_EQ(devices[0].ecc_corrected, 3);
  EXPECT_FALSE(devices[0].power_watts);
  EXPECT_THAT(devices[0].processes, IsEmpty());
  EXPECT_THAT(devices[0].xids, ElementsAre(Pair(79, 1)));
  EXPECT_THAT(devices[0].errors, ElementsAre(Pair("gpu_is_lost", 1)));
  EXPECT_EQ(devices[1].uuid, "GPU-bbbb");
  EXPECT_EQ(devices[1].lost, "");
  scenario.erase("0.nvmlDeviceGetPowerUsage");
  EXPECT_EQ(read_nvml(*library)[0].lost, "") << "it answers again";
  EXPECT_THAT(read_nvml(*library)[0].xids, ElementsAre(Pair(79, 1)));
}

TEST(Nvml, AGpuThatIsLostAtTheStartHasItsNumber) {
  FakeScenario scenario(h100());
  scenario.set("count", "3");
  scenario.set("1.uuid", "GPU-bbbb");
  scenario.set("2.uuid", "GPU-cccc");
  scenario.set("1.nvmlDeviceGetHandleByIndex_v2", "15");
  scenario.set("2.nvmlDeviceGetUUID", "999");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(3));
  EXPECT_EQ(devices[0].lost, "");
  EXPECT_THAT(devices[1].lost, HasSubstr("(15)"));
  EXPECT_THAT(devices[2].lost, HasSubstr("an internal error of the driver (999)"));
  EXPECT_FALSE(devices[2].address);
  EXPECT_THAT(library->list(), SizeIs(3));
  scenario.set("1.nvmlDeviceGetHandleByIndex_v2", "4");  // not for this container
  ASSERT_TRUE(library->start());
  EXPECT_THAT(library->list(), SizeIs(2));
}

TEST(Nvml, AGpuThatFailsAtEveryCallIsLost) {
  FakeScenario scenario(h100());
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  for (const char* function : {"nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption",
                               "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMigMode"}) {
    read_nvml(*library);
    scenario.set(function, "999");
  }
  const auto devices = read_nvml(*library);
  EXPECT_THAT(devices[0].lost, HasSubstr("(999)"));
  EXPECT_THAT(devices[0].errors, ElementsAre(Pair("unknown", 9)));
}

TEST(Nvml, TheServerOfMpsIsNoUser) {
  FakeScenario scenario(h100());
  scenario.set("0.processes", "100:1048576 900:30000000");
  scenario.set("0.process_utilization", "900:60 100:20");
  scenario.set("0.mps_clients", "100:1048576 101:2097152");
  scenario.set("mps_server", "900");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  EXPECT_TRUE(devices[0].mps);
  const auto& processes = devices[0].processes;
  ASSERT_THAT(processes, SizeIs(2));
  EXPECT_EQ(processes[0].pid, 100);
  EXPECT_EQ(processes[0].utilisation, 0.2);
  EXPECT_EQ(processes[1].pid, 101);
  EXPECT_EQ(processes[1].utilisation, 0.6) << "the server worked for it";
  EXPECT_EQ(processes[1].memory_bytes, 2097152);
}

TEST(Nvml, ReportsWhyItDoesNotStart) {
  FakeScenario scenario(FakeScenario::Values{{"nvmlInit_v2", "9"}});
  const auto library = load_nvml();
  const auto failed = library->start();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message,
            "nvmlInit_v2: the driver is not loaded (9); modprobe nvidia, and see dmesg if that "
            "fails");
  scenario.erase("nvmlInit_v2");
  scenario.set("count", "2147483648");
  const auto absurd = library->start();
  ASSERT_FALSE(absurd);
  EXPECT_EQ(absurd.error().message, "nvmlDeviceGetCount_v2 returned 2147483648 devices");
  EXPECT_FALSE(library->read(true));
}

TEST(Nvml, AddsUpWhatTheDriverSampledSinceTheLastReading) {
  FakeScenario scenario(h100());
  scenario.set("0.gpm", "0");
  scenario.set("0.utilization", "100");
  scenario.set("0.utilization_samples", "1000:80 2000:90");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  EXPECT_FALSE(read_nvml(*library, false).at(0).busy) << "samples of before the start";
  EXPECT_FALSE(read_nvml(*library, false).at(0).busy) << "no new sample";
  scenario.set("0.utilization_samples", "1000:80 2000:90 3000:100 4000:0 5000:50 6000:4294967295");
  const auto devices = read_nvml(*library, false);
  EXPECT_EQ(devices.at(0).busy, 0.5) << "a value above 100 % is left out";
  EXPECT_EQ(devices.at(0).utilisation, 1);
  scenario.set("nvmlDeviceGetSamples", "999");
  EXPECT_FALSE(read_nvml(*library, false).at(0).busy);
}

TEST(Nvml, PrefersTheMeanOfGpmToSamples) {
  FakeScenario scenario(h100());
  scenario.set("0.gpm1", "25");
  scenario.set("0.utilization_samples", "1000:80");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  static_cast<void>(read_nvml(*library, false));
  scenario.set("0.utilization_samples", "2000:80");
  EXPECT_EQ(read_nvml(*library, false).at(0).busy, 0.25);
}

TEST(Nvml, SurvivesGarbage) {
  FakeScenario scenario(h100());
  scenario.set("count", "3");
  scenario.set("0.uuid", "!garbage");
  scenario.set("0.name", "!garbage");
  scenario.set("0.pci", "!garbage");
  scenario.set("1.uuid", "GPU-same");
  scenario.set("2.uuid", "GPU-same");
  scenario.set("0.power", "4294967295");
  scenario.set("0.utilization", "4000000000");
  scenario.set("0.temperature", "4294967295");
  scenario.set("0.memory_total", "18446744073709551615");
  scenario.set("0.process_count", "4294967295");
  scenario.set("0.mig", "1");
  scenario.set("0.mig_places", "4294967295");
  scenario.set("1.process_count", "4294967295");
  scenario.set("1.processes", "4294967295:1 0:1 42:18446744073709551615");
  const auto library = load_nvml();
  ASSERT_TRUE(library->start());
  const auto devices = read_nvml(*library);
  ASSERT_THAT(devices, SizeIs(3));
  EXPECT_TRUE(is_utf8(devices[0].uuid));
  EXPECT_THAT(devices[0].uuid, HasSubstr("\\xfe"));
  EXPECT_FALSE(devices[0].address);
  EXPECT_FALSE(devices[0].power_watts);
  EXPECT_FALSE(devices[0].utilisation);
  EXPECT_FALSE(devices[0].temperature_celsius);
  EXPECT_FALSE(devices[0].memory_total_bytes);
  EXPECT_THAT(devices[0].instances, IsEmpty());
  EXPECT_EQ(devices[1].uuid, "GPU-same");
  EXPECT_EQ(devices[2].uuid, "GPU-same#2");
  ASSERT_THAT(devices[1].processes, SizeIs(1)) << "invalid pids are left out";
  EXPECT_EQ(devices[1].processes[0].pid, 42);
  EXPECT_FALSE(devices[1].processes[0].memory_bytes);
}

TEST(SharedLibrary, ReportsTheLinkersMessage) {
  const auto library = load_library(Vendor::kNvidia, "/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(library.error().message, HasSubstr("/nonexistent/libnvidia-ml.so.1"));
}

}  // namespace
}  // namespace ceems::exporter::gpu
