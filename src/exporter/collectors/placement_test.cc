#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/collectors/unit_flags.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A unit with two processes, and one that has ended.
class TwoUnits final : public UnitSource {
 public:
  TwoUnits() {
    auto snapshot = std::make_shared<UnitSnapshot>();
    snapshot->units.resize(2);
    snapshot->units[0].uuid = "42";
    snapshot->units[0].cgrouphostname = "v1";
    snapshot->units[0].pids = {10, 20};
    snapshot->units[1].uuid = "43";
    snapshot->units[1].pids = {30};
    snapshot->units[1].ended = true;
    snapshot_ = std::move(snapshot);
  }
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    if (broken) {
      return fail(ErrorCode::kUnavailable, "no cgroups");
    }
    return snapshot_;
  }
  void want_processes() override { wanted = true; }

  std::atomic<bool> wanted = false;
  std::atomic<bool> broken = false;

 private:
  std::shared_ptr<const UnitSnapshot> snapshot_;
};

class PlacementCollectorTest : public ::testing::Test {
 protected:
  PlacementCollectorTest() : machine_(root_.path()) {
    root_.write("sys/devices/system/cpu/online", "0-7\n");
    put();
  }

  /// Makes a minute pass, in which process 10 ran all the time and process 20 hardly.
  void pass() {
    uptime_ += 60;
    put();
  }
  void put() const {
    put_thread(10, uptime_, "2-3");
    put_thread(20, uptime_ / 60, "3-15");
    put_thread(30, uptime_, "0");
    root_.write("proc/uptime", fmt::format("{:.2f} 5.00\n", uptime_));
  }
  void put_thread(int pid, double ran, const std::string& cpus) const {
    const std::string folder = fmt::format("proc/{0}/task/{0}/", pid);
    root_.write(folder + "schedstat", fmt::format("{:.0f} 0 9\n", ran * 1e9));
    root_.write(folder + "stat",
                fmt::format("{} (a) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 9 9\n", pid));
    root_.write(folder + "status", "Cpus_allowed_list:\t" + cpus + "\n");
  }
  void make() {
    collector_ = create_collector(placement_collector(shared_), machine_.context,
                                  {"--collector.placement.interval=100ms"}, {.units = {units_}})
                     .value();
    start_and_wait(*collector_);
  }
  /// Whether the page contains these lines at some time, while minutes pass.
  bool shows(const std::string& lines) {
    return testing::eventually([&] {
      pass();
      return samples_of(*collector_).contains(lines);
    });
  }

  testing::TempDir root_;
  TestContext machine_;
  double uptime_ = 1000;
  std::shared_ptr<UnitFlags> shared_ = std::make_shared<UnitFlags>();
  std::shared_ptr<TwoUnits> units_ = std::make_shared<TwoUnits>();
  std::unique_ptr<Collector> collector_;
};

TEST_F(PlacementCollectorTest, ExportsBusyThreadsAndTheirCpus) {
  make();
  EXPECT_TRUE(units_->wanted);
  EXPECT_EQ(samples_of(*collector_), "ceems_placement_units_left_out{hostname=\"n1\"} 0\n");
  const std::string labels = R"({cgrouphostname="v1",hostname="n1",manager="slurm",uuid="42"} )";
  EXPECT_TRUE(shows("ceems_compute_unit_busy_threads" + labels +
                    "1\n"
                    "ceems_compute_unit_cpu_affinity_size" +
                    labels +
                    "6\n"  // of the CPUs 2 to 15 those up to 7 are online
                    "ceems_placement_units_left_out{hostname=\"n1\"} 0\n"));
  EXPECT_THAT(samples_of(*collector_), Not(HasSubstr("uuid=\"43\"")));
  EXPECT_FALSE(collector_->source_ages().empty());
}

TEST_F(PlacementCollectorTest, CountsGpusOnOtherNumaNodes) {
  for (const auto& [address, node] : {std::pair("0000:07:00.0", "0"),
                                      {"0000:08:00.0", "1"},
                                      {"0000:09:00.0", "-1"},
                                      {"0000:0a:00.0", "1"}}) {
    const std::string folder = std::string("sys/bus/pci/devices/") + address;
    root_.write(folder + "/class", "0x030200\n");
    root_.write(folder + "/vendor", "0x10de\n");
    root_.write(folder + "/numa_node", std::string(node) + "\n");
  }
  root_.write("sys/devices/system/node/node0/cpulist", "0-3\n");
  root_.write("sys/devices/system/node/node1/cpulist", "8-15\n");
  const auto inventory = shared_->gpus.inventory(machine_.context);
  std::vector<gpu::Device> devices(4);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].uuid = fmt::format("GPU-{}", i);
    devices[i].address = gpu::parse_pci_address(fmt::format("0000:{:02x}:00.0", 7 + i));
  }
  inventory->observe(gpu::Vendor::kNvidia, devices);
  make();
  EXPECT_TRUE(shows("busy_threads"));
  EXPECT_THAT(samples_of(*collector_), Not(HasSubstr("numa_far"))) << "it has no GPU";
  inventory->assignments().publish(
      "slurm",
      {{.manager = "slurm", .cgrouphostname = "v1", .uuid = "42", .device_uuid = "GPU-0"},
       {.manager = "slurm", .cgrouphostname = "v1", .uuid = "42", .device_uuid = "GPU-2"},
       {.manager = "slurm", .cgrouphostname = "v2", .uuid = "42", .device_uuid = "GPU-1"}});
  const std::string far =
      R"(ceems_compute_unit_gpu_numa_far{cgrouphostname="v1",hostname="n1",manager="slurm",uuid="42"} )";
  EXPECT_TRUE(shows(far + "0\n"));
  shared_->gpus.processes()->publish(
      {{.device_uuid = "GPU-1", .index = "1", .gpu_instance = "", .pids = {5, 20}},
       {.device_uuid = "GPU-3", .index = "3", .gpu_instance = "", .pids = {30}}});
  EXPECT_TRUE(shows(far + "1\n")) << "one of its processes uses it";
}

TEST_F(PlacementCollectorTest, FailsWhileNothingCanBeRead) {
  std::filesystem::remove(root_.path() / "proc/uptime");
  make();
  Result<> result;
  EXPECT_EQ(samples_of(*collector_, &result), "");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("no recent look at the threads of units: open " +
                                                (root_.path() / "proc/uptime").string()));
  EXPECT_TRUE(shows("busy_threads"));
  machine_.clock.advance(std::chrono::seconds(1));
  units_->broken = true;
  EXPECT_TRUE(testing::eventually([&] {
    return samples_of(*collector_) == "ceems_placement_units_left_out{hostname=\"n1\"} 0\n";
  })) << "the collector of these units reports why";
}

TEST_F(PlacementCollectorTest, NeedsUnitsAndAnInterval) {
  const auto alone = create_collector(placement_collector(shared_), machine_.context);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().message, "expected a collector of units to be on");
  const auto often = create_collector(placement_collector(shared_), machine_.context,
                                      {"--collector.placement.interval=1ms"}, {.units = {units_}});
  ASSERT_FALSE(often);
  EXPECT_THAT(often.error().message, HasSubstr("--collector.placement.interval"));
}

}  // namespace
}  // namespace ceems::exporter
