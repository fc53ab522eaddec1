#include "exporter/collectors/gpu.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/gpu/library/fake_scenario.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using gpu::FakeScenario;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class FixedUnits final : public UnitSource {
 public:
  FixedUnits() {
    auto snapshot = std::make_shared<UnitSnapshot>();
    snapshot->manager = "slurm";
    snapshot->units.resize(1);
    snapshot->units[0].uuid = "1009";
    snapshot->units[0].pids = {100, 101};
    snapshot_ = std::move(snapshot);
  }
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(milliseconds /*max_age*/) override {
    return snapshot_;
  }
  void want_processes() override { wanted_ = true; }
  [[nodiscard]] bool wanted() const { return wanted_; }

 private:
  std::shared_ptr<const UnitSnapshot> snapshot_;
  bool wanted_ = false;
};

class GpuCollectorTest : public ::testing::Test {
 protected:
  GpuCollectorTest() : machine_(root_.path()) {}

  void make() {
    auto library = gpu::load_library(gpu::Vendor::kNvidia, CEEMS_FAKE_NVML);
    ASSERT_TRUE(library) << library.error().message;
    std::vector<std::unique_ptr<gpu::GpuLibrary>> libraries;
    libraries.push_back(*std::move(library));
    collector_ =
        make_gpu_collector(machine_.context, {units_},
                           {.interval = milliseconds(5),
                            .patience = milliseconds(50),
                            .first_wait = testing::kPatience},
                           std::move(libraries), nullptr, std::make_shared<gpu::ProcessList>());
  }

  /// A spec whose flags have been parsed.
  CollectorSpec parsed(std::vector<std::string> arguments) {
    CollectorSpec spec = gpu_collector(shared_);
    shared_->gpus.add_to(flags_);
    spec.add_flags(flags_);
    arguments.insert(arguments.begin(), "ceems_exporter");
    std::vector<const char*> pointers;
    pointers.reserve(arguments.size());
    for (const std::string& argument : arguments) {
      pointers.push_back(argument.c_str());
    }
    EXPECT_FALSE(flags_.parse(static_cast<int>(pointers.size()), pointers.data()).exit);
    return spec;
  }

  testing::TempDir root_;
  TestContext machine_;
  std::shared_ptr<FixedUnits> units_ = std::make_shared<FixedUnits>();
  config::FlagSet flags_{"ceems_exporter", ""};
  std::shared_ptr<UnitFlags> shared_ = std::make_shared<UnitFlags>();
  FakeScenario scenario_{{{"count", "1"},
                          {"0.uuid", "GPU-a"},
                          {"0.name", "NVIDIA A100-SXM4-40GB"},
                          {"0.pci", "00000000:07:00.0"},
                          {"0.power", "75500"},
                          {"0.energy", "2000"},
                          {"0.utilization", "40"},
                          {"0.memory_used", "1024"},
                          {"0.memory_total", "4096"},
                          {"0.processes", "100:512 101:256 555:128"},
                          {"0.process_utilization", "100:30 101:5 555:1"}}};
  std::unique_ptr<Collector> collector_;
};

TEST_F(GpuCollectorTest, CountsTheSecondsOfClockReasons) {
  scenario_.set("0.reasons", "4");
  make();
  start_and_wait(*collector_);
  const auto has = [this](const std::string& reason, const std::string& value) {
    return samples_of(*collector_)
        .contains(R"(ceems_gpu_clock_reason_seconds_total{gpuiid="",gpuuuid="GPU-a",hostname="n1",)"
                  R"(index="0",reason=")" +
                  reason + R"(",vendor="nvidia"} )" + value + "\n");
  };
  EXPECT_TRUE(has("power_cap", "0"));
  machine_.clock.advance(std::chrono::seconds(3));
  EXPECT_TRUE(testing::eventually([&] { return has("power_cap", "3"); }));
  EXPECT_TRUE(has("hardware_thermal", "0"));
  machine_.clock.advance(std::chrono::seconds(6));  // longer than five intervals and 5 s
  scenario_.set("0.reasons", "64");
  EXPECT_TRUE(testing::eventually([&] {
    return samples_of(*collector_).contains(R"(reason="hardware_thermal",vendor="nvidia"} 1)");
  }));
  EXPECT_TRUE(has("power_cap", "3"));
}

TEST_F(GpuCollectorTest, ExposesDevices) {
  make();
  start_and_wait(*collector_);
  const std::string samples = samples_of(*collector_);
  const std::string labels =
      R"({gpuiid="",gpuuuid="GPU-a",hostname="n1",index="0",vendor="nvidia")";
  for (const std::string& line : {"ceems_gpu_power_watts" + labels + "} 75.5\n",
                                  "ceems_gpu_energy_joules_total" + labels + "} 2\n",
                                  "ceems_gpu_utilization_ratio" + labels + "} 0.4\n",
                                  "ceems_gpu_memory_used_bytes" + labels + "} 1024\n",
                                  "ceems_gpu_memory_total_bytes" + labels + "} 4096\n",
                                  "ceems_gpu_processes" + labels + "} 3\n"}) {
    EXPECT_THAT(samples, HasSubstr(line));
  }
  EXPECT_THAT(samples,
              HasSubstr(R"(ceems_gpu_info{gpuiid="",gpuuuid="GPU-a",hostname="n1",index="0",)"
                        R"(name="NVIDIA A100-SXM4-40GB",pci_address="0000:07:00.0",)"
                        R"(vendor="nvidia"} 1)"));
  EXPECT_THAT(samples, Not(HasSubstr("ceems_gpu_temperature_celsius"))) << "it reports none";
  ASSERT_THAT(collector_->source_ages(), SizeIs(1));
}

TEST_F(GpuCollectorTest, ALostGpuStaysOnThePageWithItsCounters) {
  scenario_.set("xids", "0:79");
  make();
  start_and_wait(*collector_);
  EXPECT_THAT(samples_of(*collector_), HasSubstr("ceems_gpu_up{gpuiid=\"\",gpuuuid=\"GPU-a\","
                                                 "hostname=\"n1\",index=\"0\","
                                                 "vendor=\"nvidia\"} 1\n"));
  scenario_.set("0.nvmlDeviceGetPowerUsage", "15");
  std::string page;
  EXPECT_TRUE(testing::eventually([&] {
    Result<> result;
    page = samples_of(*collector_, &result);
    return !result && page.find("ceems_gpu_up") != std::string::npos &&
           page.find("vendor=\"nvidia\"} 0\n") != std::string::npos;
  }));
  const std::string labels =
      R"({gpuiid="",gpuuuid="GPU-a",hostname="n1",index="0",vendor="nvidia")";
  EXPECT_THAT(page, HasSubstr("ceems_gpu_energy_joules_total" + labels + "} 2\n"));
  EXPECT_THAT(page, HasSubstr("xid=\"79\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("error=\"gpu_is_lost\""));
  EXPECT_THAT(page, Not(HasSubstr("ceems_gpu_power_watts")));
  EXPECT_THAT(page, Not(HasSubstr("ceems_gpu_processes")));
}

TEST_F(GpuCollectorTest, SumsTheUseOfAUnitsProcesses) {
  make();
  EXPECT_TRUE(units_->wanted());
  start_and_wait(*collector_);
  const std::string samples = samples_of(*collector_);
  const std::string labels =
      R"({cgrouphostname="",gpuiid="",gpuuuid="GPU-a",hindex="n1/gpu-0",hostname="n1",)"
      R"(index="0",manager="slurm",uuid="1009"})";
  EXPECT_THAT(samples, HasSubstr("ceems_compute_unit_gpu_memory_used_bytes" + labels + " 768\n"));
  EXPECT_THAT(samples, HasSubstr("ceems_compute_unit_gpu_utilization_ratio" + labels + " 0.35\n"));
}

TEST_F(GpuCollectorTest, CountsAProcessOnceThoughItIsOnSeveralInstances) {
  scenario_.set("0.mig", "1");
  scenario_.set("0.mig_places", "7");
  for (const std::string instance : {"0.0", "0.1"}) {
    scenario_.set(instance + ".uuid", "MIG-" + instance);
    scenario_.set(instance + ".gi", instance == "0.0" ? "3" : "5");
    scenario_.set(instance + ".ci", "0");
    scenario_.set(instance + ".processes", instance == "0.0" ? "100:512 101:1" : "100:256");
  }
  make();
  start_and_wait(*collector_);
  const std::string samples = samples_of(*collector_);
  const auto processes = [](const std::string& id, const std::string& index) {
    return R"(ceems_gpu_processes{gpuiid=")" + id + R"(",gpuuuid="GPU-a",hostname="n1",index=")" +
           index + R"(",vendor="nvidia"} )";
  };
  EXPECT_THAT(samples, HasSubstr(processes("", "") + "2\n"));
  EXPECT_THAT(samples, HasSubstr(processes("3", "0") + "2\n"));
  EXPECT_THAT(samples, HasSubstr(processes("5", "1") + "1\n"));
}

TEST_F(GpuCollectorTest, ProvidesItsDevicesToTheSampler) {
  make();
  const auto devices = collector_->sources().devices;
  ASSERT_THAT(devices, SizeIs(1));
  std::vector<energy::DeviceSample> samples;
  devices.front()->read({}, {}, samples);
  EXPECT_THAT(samples, IsEmpty()) << "not started";
  start_and_wait(*collector_);
  const auto snapshot = units_->snapshot(milliseconds(0));
  ASSERT_TRUE(snapshot);
  const std::vector<energy::ManagerUnits> managers = {
      {.manager = "slurm", .snapshot = snapshot->get()}};
  devices.front()->read({}, managers, samples);
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_EQ(samples[0].source.name, "GPU-a");
  EXPECT_EQ(samples[0].source.domain, energy::Domain::kGpu);
  EXPECT_EQ(samples[0].utilisation, 0.4);
  ASSERT_THAT(samples[0].holders, SizeIs(1));
  EXPECT_EQ(samples[0].holders[0].uuid, "1009");
  EXPECT_DOUBLE_EQ(samples[0].holders[0].use, 0.35);
  EXPECT_DOUBLE_EQ(samples[0].total_use, 0.36);
}

TEST_F(GpuCollectorTest, AScrapeDoesNotWaitForAHangingLibrary) {
  make();
  start_and_wait(*collector_);
  ASSERT_TRUE(scenario_.hang("nvmlDeviceGetUtilizationRates"));  // until the end of the test
  EXPECT_THAT(samples_of(*collector_), HasSubstr("ceems_gpu_power_watts"));
  machine_.clock.advance(std::chrono::seconds(31));
  EXPECT_EQ(collector_->source_ages().at(0).age, std::chrono::seconds(31));
  Result<> result;
  EXPECT_EQ(samples_of(*collector_, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
}

TEST_F(GpuCollectorTest, IsOffWithoutAGpu) {
  const CollectorSpec spec = parsed({});
  EXPECT_FALSE(spec.enabled_when(machine_.context, {}));
  auto collector = spec.create(machine_.context, {.units = {units_}});  // requested by flag
  ASSERT_TRUE(collector);
  EXPECT_THAT((*collector)->sources().devices, IsEmpty());
  EXPECT_FALSE(units_->wanted());
  Result<> result;
  EXPECT_EQ(samples_of(**collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
}

TEST_F(GpuCollectorTest, SearchesNoLibraryForGraphicsOfTheProcessor) {
  root_.write("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
  root_.write("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
  const CollectorSpec spec = parsed({});
  EXPECT_FALSE(spec.enabled_when(machine_.context, {}));
}

TEST_F(GpuCollectorTest, IsOffWithoutTheLibraryOfTheGpu) {
  root_.write("sys/bus/pci/devices/0000:07:00.0/class", "0x030200\n");
  root_.write("sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  const CollectorSpec spec =
      parsed({"--collector.gpu.library-path.nvidia=/nonexistent/libnvidia-ml.so.1"});
  EXPECT_FALSE(spec.enabled_when(machine_.context, {}));
}

TEST_F(GpuCollectorTest, UsesTheLibraryOfThisMachineForItsOwnSysfsOnly) {
  const host::Paths copy{.sys = root_.path() / "sys"};
  EXPECT_FALSE(shared_->gpus.may_use_library(gpu::Vendor::kNvidia, copy));
  EXPECT_TRUE(shared_->gpus.may_use_library(gpu::Vendor::kNvidia, {.sys = "/sys"}));
  // A library given by flag is used in any case.
  parsed({"--collector.gpu.library-path.nvidia=/lib/own.so"});
  EXPECT_TRUE(shared_->gpus.may_use_library(gpu::Vendor::kNvidia, copy));
  EXPECT_FALSE(shared_->gpus.may_use_library(gpu::Vendor::kAmd, copy));
}

TEST_F(GpuCollectorTest, IsOnWithAGpuAndItsLibrary) {
  const CollectorSpec spec =
      parsed({std::string("--collector.gpu.library-path.nvidia=") + CEEMS_FAKE_NVML});
  EXPECT_TRUE(spec.enabled_when(machine_.context, {}));
  auto collector = spec.create(machine_.context, {});
  ASSERT_TRUE(collector) << collector.error().message;
  start_and_wait(**collector);
  EXPECT_THAT(samples_of(**collector), HasSubstr("ceems_gpu_power_watts"));
}

TEST_F(GpuCollectorTest, IsOffWhenTheOperatorWantsNoGpus) {
  const CollectorSpec spec =
      parsed({std::string("--collector.gpu.library-path.nvidia=") + CEEMS_FAKE_NVML,
              "--collector.gpu.type=nogpu"});
  EXPECT_FALSE(spec.enabled_when(machine_.context, {}));
}

TEST_F(GpuCollectorTest, AnInvalidIntervalEndsTheStart) {
  const CollectorSpec spec = parsed({"--collector.gpu.interval=1ms"});
  const auto collector = spec.create(machine_.context, {});
  ASSERT_FALSE(collector);
  EXPECT_THAT(collector.error().message, HasSubstr("--collector.gpu.interval"));
}

}  // namespace
}  // namespace ceems::exporter
