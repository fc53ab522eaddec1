#include "exporter/energy/meter/socket_rails.h"

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/energy/meter/host_meters.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

/// ACPI power meters as NVIDIA's modules show them: the name beside the device, the rest in it.
class Module : public ::testing::Test {
 protected:
  void set(int number, const std::string& oem_info, double watts) {
    const std::string chip = "sys/class/hwmon/hwmon" + std::to_string(number);
    dir_.write(chip + "/name", "power_meter\n");
    dir_.write(chip + "/device/power1_oem_info", oem_info + "\n");
    dir_.write(chip + "/device/power1_average_interval", "50\n");
    dir_.write(chip + "/device/power1_average",
               std::to_string(static_cast<std::int64_t>(watts * 1e6)) + "\n");
  }
  /// The four rails of a GH200 of which the module draws 600 W.
  void set_gh200(int socket, double scale = 1) {
    const std::string at = " Power Socket " + std::to_string(socket);
    set(4 * socket + 1, "Module" + at, 600 * scale);
    set(4 * socket + 2, "Grace" + at, 200 * scale);
    set(4 * socket + 3, "CPU" + at, 120 * scale);
    set(4 * socket + 4, "SysIO" + at, 30 * scale);
  }

  std::vector<std::string> find() {
    rails_ = std::make_shared<SocketRails>();
    meters_ = find_meters({dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"},
                          clock_, {}, {.rails = rails_, .apu = {}});
    std::vector<std::string> names;
    for (const auto& meter : meters_) {
      if (meter->source().method != Method::kModelled) {
        names.push_back(std::string(to_string(meter->source().domain)) + " " +
                        meter->source().name);
      }
    }
    return names;
  }

  /// Joules by domain of `time`, in steps of a second.
  std::map<Domain, double> run(int time) {
    std::map<Domain, double> joules;
    for (int i = 0; i < time; ++i) {
      clock_.advance(seconds(1));
      for (const auto& meter : meters_) {
        if (meter->source().method == Method::kModelled) {
          continue;
        }
        const auto reading =
            meter->read({.now = clock_.steady_now(), .utilisation = {}, .may_block = true});
        if (reading) {
          joules[meter->source().domain] += reading->joules;
        }
      }
    }
    return joules;
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::shared_ptr<SocketRails> rails_;
  Meters meters_;
};

TEST_F(Module, OfGh200AddsUpToItsOwnMeter) {
  set_gh200(0);
  set_gh200(1);
  EXPECT_THAT(find(), ElementsAre("package acpi-cpu-0", "dram acpi-memory-0", "package acpi-cpu-1",
                                  "dram acpi-memory-1", "node acpi-module"));
  run(1);
  const double gpus = *rails_->gpu_joules(0) + *rails_->gpu_joules(1);
  const auto joules = run(10);
  const double more = *rails_->gpu_joules(0) + *rails_->gpu_joules(1) - gpus;
  EXPECT_NEAR(joules.at(Domain::kPackage), 2 * 1500, 1e-6);
  EXPECT_NEAR(joules.at(Domain::kDram), 2 * 500, 1e-6);
  EXPECT_NEAR(more, 2 * 4000, 1e-6);
  EXPECT_NEAR(joules.at(Domain::kNode), 2 * 6000, 1e-6);
  EXPECT_NEAR(joules.at(Domain::kPackage) + joules.at(Domain::kDram) + more,
              joules.at(Domain::kNode), 1e-6);
}

TEST_F(Module, KeepsItsSumWhenOneRailFails) {
  set_gh200(0);
  find();
  run(2);
  const double gpus = *rails_->gpu_joules(0);
  dir_.write("sys/class/hwmon/hwmon3/device/power1_average", "broken\n");
  auto joules = run(200);  // longer than the last value holds
  set_gh200(0, 0.5);
  for (const auto& [domain, more] : run(20)) {
    joules[domain] += more;
  }
  EXPECT_NEAR(joules[Domain::kPackage] + joules[Domain::kDram] + *rails_->gpu_joules(0) - gpus,
              joules[Domain::kNode], 1e-6);
  EXPECT_GT(joules[Domain::kNode], 0);
}

TEST_F(Module, OfTwoGracesHasNoGpusAndNoMeterOfTheNode) {
  for (const int socket : {0, 1}) {
    const std::string at = " Power Socket " + std::to_string(socket);
    set(4 * socket, "Grace" + at, 250);
    set(4 * socket + 1, "CPU" + at, 180);
    set(4 * socket + 2, "Module" + at, 0);
  }
  EXPECT_THAT(find(), ElementsAre("package acpi-cpu-0", "dram acpi-memory-0", "package acpi-cpu-1",
                                  "dram acpi-memory-1"));
  run(1);
  const auto joules = run(10);
  EXPECT_NEAR(joules.at(Domain::kPackage) + joules.at(Domain::kDram), 5000, 1e-6);
  EXPECT_FALSE(rails_->gpu_joules(0));
}

TEST_F(Module, DoesNotTakeAPartForTheNode) {
  set(0, "Total Power Socket 0", 300);
  set(1, "CPU Power Socket 0", 100);
  set(2, "Whole chassis", 900);
  // As Linux before 6.15 shows it.
  std::filesystem::remove(dir_.path() / "sys/class/hwmon/hwmon1/name");
  dir_.write("sys/class/hwmon/hwmon1/device/name", "power_meter\n");
  EXPECT_THAT(find(), ElementsAre("node hwmon-hwmon2_device-power1", "package acpi-cpu-0"));
}

TEST(RailNames, AreReadInAnyCase) {
  EXPECT_EQ(parse_rail_name("Module Power Socket 0\n"),
            (RailName{.kind = RailKind::kModule, .socket = 0}));
  EXPECT_EQ(parse_rail_name("SysIO Power Socket 3"),
            (RailName{.kind = RailKind::kSysIo, .socket = 3}));
  for (const char* const text :
       {"", "Grace", "Grace Power", "Grace Power Socket", "Grace Power Socket x",
        "Grace Power Socket -1", "Vera Power Socket 0", "Grace Power Socket 99999999999"}) {
    EXPECT_FALSE(parse_rail_name(text)) << text;
  }
}

TEST(RailPlan, CountsNothingTwice) {
  using enum RailKind;
  for (unsigned set = 0; set < 16; ++set) {
    std::vector<RailKind> rails;
    for (const RailKind kind : {kCpu, kSysIo, kGrace, kModule}) {
      if ((set >> static_cast<unsigned>(kind) & 1U) != 0) {
        rails.push_back(kind);
      }
    }
    Contents all = 0;
    for (const RailSource& source : plan_sources(rails)) {
      EXPECT_EQ(all & source.contents(), 0U);
      all |= source.contents();
    }
    EXPECT_EQ(all & kHasGpus, 0U);
    EXPECT_EQ((all & kHasCores) != 0, (set & 5U) != 0) << set;
  }
}

}  // namespace
}  // namespace ceems::exporter::energy
