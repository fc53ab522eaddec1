#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/energy/meter/held_power.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;

/// The job in which this process is, with one of two CPUs.
class OwnJob final : public UnitSource {
 public:
  explicit OwnJob(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    auto snapshot = std::make_shared<UnitSnapshot>();
    snapshot->manager = "slurm";
    snapshot->taken = clock_.steady_now();
    snapshot->wall = clock_.now();
    Unit& unit = snapshot->units.emplace_back();
    unit.uuid = "42";
    unit.path = "/job_42";
    unit.stats.reserved_cpus = 1;
    return snapshot;
  }

 private:
  const Clock& clock_;
};

class MarksCollectorTest : public ::testing::Test {
 protected:
  MarksCollectorTest() : test_(dir_.path()), socket_(dir_.path() / "mark.sock") {
    dir_.write("proc/stat",
               "cpu  0 0 0 5 0 0 0 0 0 0\ncpu0 0 0 0 5 0 0 0 0 0 0\n"
               "cpu1 0 0 0 5 0 0 0 0 0 0\n");
    dir_.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
    const std::string pid = std::to_string(::getpid());
    const std::string uid = std::to_string(::geteuid());
    dir_.write("proc/" + pid + "/stat", "1 (a) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4711 0\n");
    dir_.write("proc/" + pid + "/status", "Uid:\t" + uid + "\n");
    dir_.write("proc/" + pid + "/cgroup", "0::/job_42/step_0\n");
    dir_.write("sys/fs/cgroup/job_42/step_0/cgroup.procs", pid + "\n");
    units_ = std::make_shared<OwnJob>(test_.clock);
    package_ = std::make_shared<energy::PublishedPowerMeter>(
        energy::SourceInfo{.name = "rapl-package-0", .domain = energy::Domain::kPackage});
    package_->publish({.watts = 200, .time = test_.clock.steady_now()});
    energy_ = create_collector(energy_collector(), test_.context,
                               {"--collector.energy.idle-watts=package=200"},
                               {.units = {units_}, .meters = {package_}})
                  .value();
    Sources sources = energy_->sources();
    sources.units = {units_};
    marks_ = create_collector(marks_collector(), test_.context,
                              {"--collector.marks.socket=" + socket_}, sources)
                 .value();
    samples_of(*energy_);
    marks_->start();
    connection_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket_.c_str(), socket_.size() + 1);
    EXPECT_EQ(
        ::connect(connection_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        0);
  }

  /// Sends a message and waits until it was read.
  void say(const std::string& text) {
    ++sent_;
    EXPECT_EQ(::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(testing::eventually([&] {
      return samples_of(*marks_).find("ceems_exporter_marks_total " + std::to_string(sent_)) !=
             std::string::npos;
    }));
  }
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      test_.clock.advance(std::chrono::seconds(1));
      samples_of(*energy_);  // takes a sample
    }
  }

  testing::TempDir dir_;
  TestContext test_;
  std::string socket_;
  std::shared_ptr<OwnJob> units_;
  std::shared_ptr<energy::PublishedPowerMeter> package_;
  std::unique_ptr<Collector> energy_;
  std::unique_ptr<Collector> marks_;
  UniqueFd connection_;
  int sent_ = 0;
};

TEST_F(MarksCollectorTest, ExportsRegionsResultsAndFiguresOfMerit) {
  say("begin solve");
  pass(4);
  say("end solve");
  say("begin short");
  say("end short");
  say("result step 50");
  say("result simulated 0.25 ns");
  say("fom speed 83.2 ns/day");
  say("end other");
  pass(1);
  EXPECT_EQ(
      samples_of(*marks_),
      R"(ceems_compute_unit_fom{cgrouphostname="",fom="speed",hostname="n1",manager="slurm",unit="ns/day",uuid="42"} 83.2
ceems_compute_unit_region_count_total{cgrouphostname="",hostname="n1",manager="slurm",region="short",uuid="42"} 1
ceems_compute_unit_region_count_total{cgrouphostname="",hostname="n1",manager="slurm",region="solve",uuid="42"} 1
ceems_compute_unit_region_energy_joules_total{cgrouphostname="",domain="node",hostname="n1",manager="slurm",region="solve",uuid="42"} 400
ceems_compute_unit_region_energy_joules_total{cgrouphostname="",domain="package",hostname="n1",manager="slurm",region="solve",uuid="42"} 400
ceems_compute_unit_region_seconds_total{cgrouphostname="",hostname="n1",manager="slurm",region="short",uuid="42"} 0
ceems_compute_unit_region_seconds_total{cgrouphostname="",hostname="n1",manager="slurm",region="solve",uuid="42"} 4
ceems_compute_unit_region_self_energy_joules_total{cgrouphostname="",hostname="n1",manager="slurm",region="solve",uuid="42"} 400
ceems_compute_unit_results_total{cgrouphostname="",hostname="n1",manager="slurm",result="simulated",unit="ns",uuid="42"} 0.25
ceems_compute_unit_results_total{cgrouphostname="",hostname="n1",manager="slurm",result="step",unit="",uuid="42"} 50
ceems_exporter_marks_dropped_total{reason="depth"} 0
ceems_exporter_marks_dropped_total{reason="malformed"} 0
ceems_exporter_marks_dropped_total{reason="names"} 0
ceems_exporter_marks_dropped_total{reason="rate"} 0
ceems_exporter_marks_dropped_total{reason="unmatched"} 1
ceems_exporter_marks_refused_total{reason="connections"} 0
ceems_exporter_marks_refused_total{reason="gone"} 0
ceems_exporter_marks_refused_total{reason="no_unit"} 0
ceems_exporter_marks_refused_total{reason="other_user"} 0
ceems_exporter_marks_refused_total{reason="rate"} 0
ceems_exporter_marks_refused_total{reason="units"} 0
ceems_exporter_marks_total 8
)");
}

TEST_F(MarksCollectorTest, IsRefusedWithoutUnitsOrEnergy) {
  for (const Sources& sources : {Sources{}, Sources{.units = {units_}}, energy_->sources()}) {
    const auto created = create_collector(marks_collector(), test_.context,
                                          {"--collector.marks.socket=" + socket_ + "2"}, sources);
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().message,
              "expected a collector of units and --collector.energy to be on");
  }
}

TEST_F(MarksCollectorTest, NamesASocketThatItCannotHave) {
  Sources sources = energy_->sources();
  sources.units = {units_};
  const auto created = create_collector(marks_collector(), test_.context,
                                        {"--collector.marks.socket=" + socket_}, sources);
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message,
              HasSubstr("--collector.marks.socket: socket of marks " + socket_));
}

}  // namespace
}  // namespace ceems::exporter
