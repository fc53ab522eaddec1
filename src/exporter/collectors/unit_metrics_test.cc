#include "exporter/collectors/unit_metrics.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/energy/meter/held_power.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// One VM that has reserved 1 of 2 CPUs and uses a tenth of it.
class OneVm final : public UnitSource {
 public:
  explicit OneVm(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] std::string_view manager() const override { return "libvirt"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    auto snapshot = std::make_shared<UnitSnapshot>();
    snapshot->taken = clock_.steady_now();
    snapshot->wall = clock_.now();
    Unit& unit = snapshot->units.emplace_back();
    unit.uuid = "vm";
    unit.stats.reserved_cpus = 1;
    unit.stats.cpu_user_seconds =
        0.1 * std::chrono::duration<double>(snapshot->taken.time_since_epoch()).count();
    unit.stats.memory_shmem_bytes = 5;
    unit.stats.memory_held_bytes = 700;
    return snapshot;
  }
  void probe(std::span<UnitProbe> probes) override {
    for (UnitProbe& probe : probes) {
      probe.io_bytes = 0;
      probe.memory_charged_bytes = 1000;
      probe.memory_held_bytes = 900;
    }
  }

 private:
  const Clock& clock_;
};

/// One GPU that the VM keeps busy for half of the time.
class OneGpu final : public energy::DeviceMeters {
 public:
  void read(const energy::MeterContext& /*context*/,
            std::span<const energy::ManagerUnits> /*managers*/,
            std::vector<energy::DeviceSample>& /*samples*/) override {}
  bool read_use(std::span<const energy::ManagerUnits> /*managers*/,
                std::vector<energy::DeviceUse>& uses) override {
    energy::DeviceUse& use = uses.emplace_back();
    use.manager = "libvirt";
    use.uuid = "vm";
    use.device = "GPU-a";
    use.instance = "3";
    use.index = "1";
    use.seconds = 10;
    use.busy = 0.5;
    use.memory_bytes = 4096;
    return true;
  }
  [[nodiscard]] std::string models() const override { return "NVIDIA A100"; }
};

class UnitUseMetricsTest : public ::testing::Test {
 protected:
  UnitUseMetricsTest() : test_(dir_.path()) {
    dir_.write("proc/stat", "cpu  0 0 0 5 0 0 0 0 0 0\ncpu0 0 0 0 5 0 0 0 0 0 0\n");
    dir_.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
    package_ = std::make_shared<energy::PublishedPowerMeter>(
        energy::SourceInfo{.name = "rapl-package-0", .domain = energy::Domain::kPackage});
    package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  }

  /// The page of a collector ten seconds after its first one.
  std::string page(energy::DeviceMeterList devices) {
    auto collector =
        create_collector(energy_collector(), test_.context, {"--collector.energy.idle-watts=20"},
                         {.units = {std::make_shared<OneVm>(test_.clock)},
                          .meters = {package_},
                          .devices = std::move(devices)});
    EXPECT_TRUE(collector) << collector.error().message;
    samples_of(**collector);
    test_.clock.advance(std::chrono::seconds(10));
    return samples_of(**collector);
  }

  testing::TempDir dir_;
  TestContext test_;
  std::shared_ptr<energy::PublishedPowerMeter> package_;
};

TEST_F(UnitUseMetricsTest, ExportsWhatIsKnownOfAUnit) {
  const std::string text = page({std::make_shared<OneGpu>()});
  const std::string unit = R"(cgrouphostname="",hostname="n1",manager="libvirt",uuid="vm"} )";
  const std::string gpu =
      R"({cgrouphostname="",gpuiid="3",gpuuuid="GPU-a",hostname="n1",index="1",)"
      R"(manager="libvirt",uuid="vm"} )";
  for (const std::string& line :
       {"ceems_compute_unit_memory_shmem_bytes{" + unit + "5\n",
        "ceems_compute_unit_memory_peak_bytes{" + unit + "900\n",
        "ceems_compute_unit_cpu_used_max{" + unit + "0.1",
        "ceems_compute_unit_idle_seconds_total{" + unit + "0\n",
        "ceems_compute_unit_gpu_busy_seconds_total" + gpu + "10\n",  // two readings of 10 s
        "ceems_compute_unit_gpu_memory_peak_bytes" + gpu + "4096\n",
        std::string(R"(gpu_model="NVIDIA A100")")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("gpu_sm_seconds_total"))) << "the library has no SM activity";
  // All of the one CPU online is reserved, and so is the idle energy of 20 W.
  EXPECT_THAT(text, HasSubstr("ceems_compute_unit_idle_energy_joules_total{cgrouphostname=\"\","
                              "domain=\"package\",hostname=\"n1\",manager=\"libvirt\","
                              "uuid=\"vm\"} 200\n"));
}

TEST_F(UnitUseMetricsTest, LeavesOutWhatIsNotKnown) {
  const std::string text = page({});
  EXPECT_THAT(text, Not(HasSubstr("ceems_compute_unit_gpu_")));
  EXPECT_THAT(text, HasSubstr(R"(gpu_model="")"));
}

}  // namespace
}  // namespace ceems::exporter
