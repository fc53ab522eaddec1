#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/energy/meter/held_power.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using energy::Domain;
using energy::SourceInfo;
using ::testing::HasSubstr;
using ::testing::Not;

class OneUnit final : public UnitSource {
 public:
  explicit OneUnit(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    if (slow) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    auto snapshot = std::make_shared<UnitSnapshot>();
    ++calls;
    snapshot->taken = clock_.steady_now();
    snapshot->wall = clock_.now();
    if (present) {
      Unit& unit = snapshot->units.emplace_back();
      unit.uuid = "42\n\"\\";
      unit.cgrouphostname = "vnode1";
      unit.stats.reserved_cpus = 1;
    }
    return snapshot;
  }
  bool present = true;
  bool slow = false;
  std::atomic<int> calls = 0;

 private:
  const Clock& clock_;
};

class EnergyCollectorTest : public ::testing::Test {
 protected:
  EnergyCollectorTest() : test_(dir_.path()) {
    dir_.write("proc/stat",
               "cpu  0 0 0 5 0 0 0 0 0 0\ncpu0 0 0 0 5 0 0 0 0 0 0\n"
               "cpu1 0 0 0 5 0 0 0 0 0 0\n");
    dir_.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
    source_ = std::make_shared<OneUnit>(test_.clock);
    energy::Meters meters;
    package_ = add(meters, {.name = "rapl-package-0", .domain = Domain::kPackage});
    wall_ = add(meters, {.name = "ipmi", .domain = Domain::kNode});
    collector_ = create_collector(energy_collector(), test_.context, {},
                                  {.units = {source_}, .meters = std::move(meters)})
                     .value();
  }

  static std::shared_ptr<energy::PublishedPowerMeter> add(energy::Meters& meters, SourceInfo info) {
    auto meter = std::make_shared<energy::PublishedPowerMeter>(std::move(info));
    meters.push_back(meter);
    return meter;
  }

  /// The page `seconds` later.
  std::string scrape(int seconds) {
    test_.clock.advance(std::chrono::seconds(seconds));
    return samples_of(*collector_);
  }

  testing::TempDir dir_;
  TestContext test_;
  std::shared_ptr<OneUnit> source_;
  std::shared_ptr<energy::PublishedPowerMeter> package_;
  std::shared_ptr<energy::PublishedPowerMeter> wall_;
  std::unique_ptr<Collector> collector_;
};

TEST_F(EnergyCollectorTest, ExportsHowOftenHeatSlowedTheProcessors) {
  EXPECT_THAT(scrape(0), Not(HasSubstr("throttle")));
  for (const std::string cpu : {"0", "1"}) {
    const std::string folder = "sys/devices/system/cpu/cpu" + cpu;
    dir_.write(folder + "/topology/physical_package_id", "0\n");
    dir_.write(folder + "/topology/thread_siblings_list", cpu + "\n");
    dir_.write(folder + "/thermal_throttle/package_throttle_count", "5\n");
    dir_.write(folder + "/thermal_throttle/core_throttle_count", "2\n");
  }
  collector_ =
      create_collector(energy_collector(), test_.context, {}, {.units = {source_}}).value();
  const std::string page = scrape(0);
  EXPECT_THAT(page,
              HasSubstr("ceems_cpu_throttle_events_total{hostname=\"n1\",package=\"0\"} 5\n"));
  EXPECT_THAT(page,
              HasSubstr("ceems_cpu_core_throttle_events_total{hostname=\"n1\",package=\"0\"} 4\n"));
}

TEST_F(EnergyCollectorTest, ExportsEveryDomainOfUnitSystemUnallocatedAndNode) {
  package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  wall_->publish({.watts = 100, .time = test_.clock.steady_now()});
  scrape(0);
  EXPECT_EQ(
      scrape(10),
      R"(ceems_compute_unit_cpu_used_max{cgrouphostname="vnode1",hostname="n1",manager="slurm",uuid="42\n\"\\"} 0
ceems_compute_unit_energy_joules_total{cgrouphostname="vnode1",domain="node",hostname="n1",manager="slurm",uuid="42\n\"\\"} 500
ceems_compute_unit_energy_joules_total{cgrouphostname="vnode1",domain="other",hostname="n1",manager="slurm",uuid="42\n\"\\"} 200
ceems_compute_unit_energy_joules_total{cgrouphostname="vnode1",domain="package",hostname="n1",manager="slurm",uuid="42\n\"\\"} 300
ceems_compute_unit_idle_energy_joules_total{cgrouphostname="vnode1",domain="node",hostname="n1",manager="slurm",uuid="42\n\"\\"} 500
ceems_compute_unit_idle_energy_joules_total{cgrouphostname="vnode1",domain="other",hostname="n1",manager="slurm",uuid="42\n\"\\"} 200
ceems_compute_unit_idle_energy_joules_total{cgrouphostname="vnode1",domain="package",hostname="n1",manager="slurm",uuid="42\n\"\\"} 300
ceems_compute_unit_unused_idle_energy_joules_total{cgrouphostname="vnode1",domain="node",hostname="n1",manager="slurm",uuid="42\n\"\\"} 500
ceems_compute_unit_unused_idle_energy_joules_total{cgrouphostname="vnode1",domain="other",hostname="n1",manager="slurm",uuid="42\n\"\\"} 200
ceems_compute_unit_unused_idle_energy_joules_total{cgrouphostname="vnode1",domain="package",hostname="n1",manager="slurm",uuid="42\n\"\\"} 300
ceems_ended_units_energy_joules_total{domain="node",hostname="n1"} 0
ceems_ended_units_energy_joules_total{domain="other",hostname="n1"} 0
ceems_ended_units_energy_joules_total{domain="package",hostname="n1"} 0
ceems_energy_idle_info{basis="learned",domain="node",hostname="n1"} 1
ceems_energy_idle_info{basis="learned",domain="other",hostname="n1"} 1
ceems_energy_idle_info{basis="learned",domain="package",hostname="n1"} 1
ceems_energy_idle_watts{domain="node",hostname="n1"} 100
ceems_energy_idle_watts{domain="other",hostname="n1"} 40
ceems_energy_idle_watts{domain="package",hostname="n1"} 60
ceems_energy_source_age_seconds{hostname="n1",source="ipmi"} 10
ceems_energy_source_age_seconds{hostname="n1",source="rapl-package-0"} 10
ceems_energy_source_info{domain="node",hostname="n1",method="measured",source="ipmi"} 1
ceems_energy_source_info{domain="other",hostname="n1",method="derived",source="ipmi"} 1
ceems_energy_source_info{domain="package",hostname="n1",method="measured",source="rapl-package-0"} 1
ceems_node_energy_joules_total{domain="node",hostname="n1",source="ipmi"} 1000
ceems_node_energy_joules_total{domain="other",hostname="n1",source="ipmi"} 400
ceems_node_energy_joules_total{domain="package",hostname="n1",source="rapl-package-0"} 600
ceems_node_info{cpu_model="",gpu_model="",hostname="n1",sockets=""} 1
ceems_system_energy_joules_total{domain="node",hostname="n1"} 0
ceems_system_energy_joules_total{domain="other",hostname="n1"} 0
ceems_system_energy_joules_total{domain="package",hostname="n1"} 0
ceems_unallocated_energy_joules_total{domain="node",hostname="n1"} 500
ceems_unallocated_energy_joules_total{domain="other",hostname="n1"} 200
ceems_unallocated_energy_joules_total{domain="package",hostname="n1"} 300
)");
}

TEST_F(EnergyCollectorTest, ReportsTheNodeAsASumWithoutAWallMeter) {
  package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  scrape(0);
  const std::string page = scrape(10);
  EXPECT_THAT(page, HasSubstr("ceems_node_energy_joules_total{domain=\"node\",hostname=\"n1\","
                              "source=\"sum\"} 600"));
  EXPECT_THAT(page, HasSubstr("ceems_energy_source_info{domain=\"node\",hostname=\"n1\","
                              "method=\"derived\",source=\"sum\"} 1"));
  EXPECT_THAT(page, Not(HasSubstr("domain=\"other\"")));
}

TEST_F(EnergyCollectorTest, CountsWhatItDoesNotBelieve) {
  package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  wall_->publish({.watts = 65'535, .time = test_.clock.steady_now()});
  scrape(0);
  const std::string page = scrape(10);
  EXPECT_THAT(page, HasSubstr("ceems_energy_readings_excluded_total{hostname=\"n1\",reason="
                              "\"sentinel\",source=\"ipmi\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("ceems_node_energy_joules_total{domain=\"node\",hostname=\"n1\","
                              "source=\"sum\"} 600\n"));
  EXPECT_THAT(page, Not(HasSubstr("reason=\"frozen\"")));
}

TEST_F(EnergyCollectorTest, DoesNotCallAMeterThatNeverAnsweredMeasured) {
  wall_->publish({.watts = 100, .time = test_.clock.steady_now()});
  scrape(0);
  EXPECT_THAT(scrape(10), Not(HasSubstr("method=\"measured\",source=\"rapl-package-0\"")));
}

TEST_F(EnergyCollectorTest, LetsTheAgeOfAVanishedSourceGrow) {
  package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  scrape(0);
  scrape(10);
  const std::string page = scrape(290);
  EXPECT_THAT(page, HasSubstr("ceems_energy_source_age_seconds{hostname=\"n1\","
                              "source=\"rapl-package-0\"} 300"));
  EXPECT_THAT(page, HasSubstr("domain=\"package\",hostname=\"n1\",source=\"rapl-package-0\"} 600"));
}

TEST_F(EnergyCollectorTest, KeepsAnEndedUnitForAMinuteAfterItsEnd) {
  package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  scrape(0);
  scrape(1);
  source_->present = false;
  EXPECT_THAT(scrape(1), HasSubstr("cgrouphostname=\"vnode1\""));
  EXPECT_THAT(scrape(59), HasSubstr("cgrouphostname=\"vnode1\""));
  const std::string page = scrape(1);
  EXPECT_THAT(page, Not(HasSubstr("cgrouphostname=\"vnode1\"")));
  EXPECT_THAT(page, HasSubstr("ceems_ended_units_energy_joules_total{domain=\"package\","
                              "hostname=\"n1\"} 30"));
}

TEST_F(EnergyCollectorTest, ShowsTheEnergyOfTheNodeOnTheFirstPage) {
  package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  wall_->publish({.watts = 100, .time = test_.clock.steady_now()});
  const std::string page = scrape(0);
  EXPECT_THAT(page, HasSubstr("ceems_node_energy_joules_total{domain=\"node\",hostname=\"n1\","
                              "source=\"ipmi\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("ceems_energy_source_info{domain=\"node\",hostname=\"n1\","
                              "method=\"measured\",source=\"ipmi\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("source=\"sum\"")));
  EXPECT_THAT(page, Not(HasSubstr("source=\"power-model\"")));
}

class FirstPageTest : public EnergyCollectorTest {
 protected:
  /// Creates the collector again, with these meters beside the model of the CPU.
  void create(energy::Meters meters) {
    collector_ = create_collector(energy_collector(), test_.context, {},
                                  {.units = {source_}, .meters = std::move(meters)})
                     .value();
  }
};

TEST_F(FirstPageTest, ShowsTheModelWithoutAnyMeter) {
  create({});
  // Two CPUs that the table does not know, of the 160 of its server, which idles at 127 + 100 W.
  EXPECT_THAT(scrape(0), HasSubstr("ceems_node_energy_joules_total{domain=\"node\","
                                   "hostname=\"n1\",source=\"power-model\"} 0\n"));
  EXPECT_THAT(scrape(10), HasSubstr("ceems_node_energy_joules_total{domain=\"node\","
                                    "hostname=\"n1\",source=\"power-model\"} 28.375"));
}

TEST_F(FirstPageTest, CountsWhatAJumpOfACounterShowed) {
  const auto zone = [this](int joules) {
    dir_.write("sys/class/powercap/intel-rapl:0/energy_uj", std::to_string(joules) + "000000\n");
  };
  dir_.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  dir_.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
  dir_.write("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "205000000\n");
  zone(1);
  create({});
  scrape(0);
  zone(101);
  EXPECT_THAT(scrape(1), HasSubstr("ceems_energy_rejected_joules_total{hostname=\"n1\","
                                   "source=\"rapl-package-0\"} 0\n"
                                   "ceems_energy_rejected_steps_total{hostname=\"n1\","
                                   "source=\"rapl-package-0\"} 0\n"));
  zone(20'101);
  const std::string page = scrape(1);
  EXPECT_THAT(page, HasSubstr("ceems_energy_rejected_joules_total{hostname=\"n1\","
                              "source=\"rapl-package-0\"} 19900\n"
                              "ceems_energy_rejected_steps_total{hostname=\"n1\","
                              "source=\"rapl-package-0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("ceems_node_energy_joules_total{domain=\"package\","
                              "hostname=\"n1\",source=\"rapl-package-0\"} 200\n"));
  EXPECT_THAT(page, HasSubstr("ceems_compute_unit_energy_joules_total{cgrouphostname=\"vnode1\","
                              "domain=\"package\",hostname=\"n1\",manager=\"slurm\","
                              "uuid=\"42\\n\\\"\\\\\"} 100\n"));
}

TEST_F(FirstPageTest, ShowsTheSumOfMeteredPackages) {
  energy::Meters meters;
  package_ = add(meters, {.name = "rapl-package-0", .domain = Domain::kPackage});
  package_->publish({.watts = 60, .time = test_.clock.steady_now()});
  create(std::move(meters));
  for (const int joules : {0, 600}) {  // the same series on the first page and on the next
    const std::string page = scrape(joules / 60);
    EXPECT_THAT(page, HasSubstr(fmt::format("ceems_node_energy_joules_total{{domain=\"node\","
                                            "hostname=\"n1\",source=\"sum\"}} {}\n",
                                            joules)));
    EXPECT_THAT(page, Not(HasSubstr("source=\"power-model\"")));
  }
}

TEST_F(EnergyCollectorTest, WaitsForTheFirstSampleOfItsThread) {
  source_->slow = true;
  EXPECT_EQ(source_->calls, 0);
  start_and_wait(*collector_);
  EXPECT_GE(source_->calls, 1);
}

TEST(EnergyCollectorSpec, IsOnByDefaultOnlyWithUnitsOfALiveCgroupTree) {
  const testing::TempDir dir;
  TestContext test(dir.path());
  const CollectorSpec spec = energy_collector();
  EXPECT_FALSE(spec.enabled_when(test.context, {}));
  const Sources sources{.units = {std::make_shared<OneUnit>(test.clock)}};
  dir.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  EXPECT_FALSE(spec.enabled_when(test.context, sources));  // plain files
}

TEST(EnergyCollectorSpec, TakesTwoReadingsForTheModel) {
  const testing::TempDir dir;
  TestContext test(dir.path());
  dir.write("proc/stat", "cpu  0 0 0 100 0 0 0 0 0 0\ncpu0 0 0 0 100 0 0 0 0 0 0\n");
  dir.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
  const auto refused = create_collector(energy_collector(), test.context,
                                        {"--collector.energy.model-watts=idle=95"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--collector.energy.model-watts: expected two"));
  auto collector = create_collector(energy_collector(), test.context,
                                    {"--collector.energy.model-watts=idle=95,full=410"})
                       .value();
  static_cast<void>(samples_of(*collector));
  test.clock.advance(std::chrono::seconds(10));
  dir.write("proc/stat", "cpu  1000 0 0 100 0 0 0 0 0 0\ncpu0 1000 0 0 100 0 0 0 0 0 0\n");
  EXPECT_THAT(samples_of(*collector),
              HasSubstr("ceems_node_energy_joules_total{domain=\"node\",hostname=\"n1\",source="
                        "\"power-model\"} 4100\n"));
}

}  // namespace
}  // namespace ceems::exporter
