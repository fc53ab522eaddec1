#include "exporter/gpu/shared_power.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "exporter/energy/meter/socket_rails.h"

namespace ceems::exporter::gpu {
namespace {

using energy::DeviceSample;
using std::chrono::seconds;

/// A meter that adds constant watts, or fails.
class ConstantMeter final : public energy::EnergyMeter {
 public:
  explicit ConstantMeter(const double& watts) : watts_(watts) {}
  [[nodiscard]] const energy::SourceInfo& source() const override { return source_; }
  Result<energy::Reading> read(const energy::MeterContext& context) override {
    if (std::isnan(watts_)) {
      return fail(ErrorCode::kUnavailable, "no value");
    }
    const double passed = last_ ? std::chrono::duration<double>(context.now - *last_).count() : 0;
    last_ = context.now;
    return energy::Reading{.joules = watts_ * passed, .fresh = context.now, .idle_watts = {}};
  }

 private:
  const double& watts_;
  energy::SourceInfo source_;
  std::optional<Clock::SteadyTime> last_;
};

class Gh200 : public ::testing::Test {
 protected:
  void make(bool module) {
    rails_ = std::make_shared<energy::SocketRails>();
    rails_->add({.kind = energy::RailKind::kGrace, .socket = 0},
                std::make_unique<ConstantMeter>(grace_));
    if (module) {
      rails_->add({.kind = energy::RailKind::kModule, .socket = 0},
                  std::make_unique<ConstantMeter>(module_));
    }
    meters_ = energy::SocketRails::meters(rails_);
    shared_.set_host({.rails = rails_, .apu = {}});
    device_.uuid = "GPU-a";
    device_.name = "NVIDIA GH200 120GB";
  }
  /// One second in which NVML's counter rises by 600 J.
  DeviceSample step() {
    now_ += seconds(1);
    for (const auto& meter : meters_) {
      const auto reading = meter->read({.now = now_, .utilisation = {}});
      host_joules_[meter->source().domain] += reading ? reading->joules : 0;
    }
    DeviceSample sample;
    sample.joules = first_ ? 0 : 600;
    sample.seconds = first_ ? 0 : 1;
    first_ = false;
    shared_.correct(device_, {}, {}, now_, sample);
    return sample;
  }

  double grace_ = 200;
  double module_ = 600;
  std::shared_ptr<energy::SocketRails> rails_;
  energy::Meters meters_;
  std::map<energy::Domain, double> host_joules_;
  SharedPower shared_;
  DeviceState device_;
  Clock::SteadyTime now_{seconds(100)};
  bool first_ = true;
};

TEST_F(Gh200, GpuHasWhatTheModuleHasMoreThanGrace) {
  make(true);
  double joules = 0;
  for (int i = 0; i < 11; ++i) {
    joules += step().joules;
  }
  EXPECT_NEAR(joules, 4000, 1e-6);
  EXPECT_NEAR(joules + host_joules_[energy::Domain::kPackage], host_joules_[energy::Domain::kNode],
              1e-6);
  EXPECT_EQ(step().source.method, energy::Method::kDerived);
}

TEST_F(Gh200, CounterLessGraceWithoutARailOfTheModule) {
  make(false);
  double joules = 0;
  for (int i = 0; i < 11; ++i) {
    joules += step().joules;
  }
  EXPECT_NEAR(joules, 4000, 1e-6);
  EXPECT_NEAR(joules + host_joules_[energy::Domain::kPackage], 6000, 1e-6);
}

TEST_F(Gh200, CounterAsItIsWhileTheHostCountsNothing) {
  make(true);
  step();
  step();
  grace_ = std::nan("");
  EXPECT_NEAR(step().joules, 600, 1e-9);
}

TEST_F(Gh200, OtherGpusAreNotTouched) {
  make(true);
  device_.name = "NVIDIA GB200";
  step();
  EXPECT_NEAR(step().joules, 600, 1e-9);
}

class Mi300a : public ::testing::Test {
 protected:
  Mi300a() {
    host::CpuTopology topology;
    topology.packages = {0, 1};
    for (int cpu = 0; cpu < 8; ++cpu) {
      topology.cpus.push_back({.socket = cpu / 4, .core = cpu});
    }
    apu_->set_topology(topology);
    shared_.set_host({.rails = {}, .apu = apu_});
    snapshot_.units.resize(2);
    add(0, "cpujob", {0, 1, 2, 3});
    add(1, "gpujob", {4});
  }
  void add(std::size_t unit, const std::string& uuid, std::vector<int> cpus) {
    snapshot_.units[unit].uuid = uuid;
    snapshot_.units[unit].stats.reserved_cpus = static_cast<double>(cpus.size());
    snapshot_.units[unit].stats.cpu_set = std::make_shared<const std::vector<int>>(std::move(cpus));
  }
  std::vector<DeviceSample> step(double gpu_use) {
    now_ += seconds(1);
    std::vector<DeviceSample> samples(2);
    const energy::ManagerUnits units{.manager = "slurm", .snapshot = &snapshot_};
    for (std::size_t i = 0; i < 2; ++i) {
      DeviceState device;
      device.vendor = Vendor::kAmd;
      device.name = "AMD Instinct MI300A";
      device.uuid = std::to_string(i);
      samples[i].joules = 500;
      samples[i].seconds = 1;
      samples[i].utilisation = i == 1 ? gpu_use : 0;
      samples[i].total_use = 1;
      if (i == 1) {
        samples[i].holders = {
            {.manager = "slurm", .cgrouphostname = "", .uuid = "gpujob", .alloc = 1, .use = 1}};
      }
      shared_.correct(device, {}, std::span(&units, 1), now_, samples[i]);
    }
    return samples;
  }

  std::shared_ptr<energy::ApuPower> apu_ = std::make_shared<energy::ApuPower>();
  SharedPower shared_;
  UnitSnapshot snapshot_;
  Clock::SteadyTime now_{seconds(100)};
};

TEST_F(Mi300a, IsSplitByBusyCoresAndComputeUnits) {
  step(0.5);
  snapshot_.units[0].stats.cpu_total_seconds = 2;  // two of its four cores
  snapshot_.units[1].stats.cpu_total_seconds = 1;
  const auto samples = step(0.5);
  ASSERT_EQ(samples[0].holders.size(), 1U);  // the GPU job has no CPU there
  EXPECT_EQ(samples[0].holders[0].uuid, "cpujob");
  EXPECT_NEAR(samples[0].holders[0].alloc, 0.3, 1e-12);
  EXPECT_NEAR(samples[0].holders[0].use, 0.15, 1e-12);
  EXPECT_NEAR(samples[0].total_use, 0.15, 1e-12);  // its compute units are idle
  ASSERT_EQ(samples[1].holders.size(), 1U);
  EXPECT_EQ(samples[1].holders[0].uuid, "gpujob");
  EXPECT_NEAR(samples[1].holders[0].alloc, 0.7 + 0.3 / 4, 1e-12);
  EXPECT_NEAR(samples[1].holders[0].use, 0.35 + 0.3 / 4, 1e-12);
  EXPECT_NEAR(samples[1].total_use, 0.35 + 0.3 / 4, 1e-12);
}

TEST_F(Mi300a, CountsAsOneDomain) {
  double watts = 132;
  energy::ApuPackageMeter package(std::make_shared<ConstantMeter>(watts), apu_);
  const auto read = [&] {
    now_ += seconds(1);
    return *package.read({.now = now_, .utilisation = {}});
  };
  read();
  EXPECT_NEAR(read().joules, 132, 1e-9);
  EXPECT_FALSE(read().elsewhere);
  step(0);
  EXPECT_TRUE(read().elsewhere);
  EXPECT_GT(read().joules, 0) << "a counter of 0 would pass for a frozen one";
  now_ += energy::ApuPower::kSilent;
  EXPECT_FALSE(read().elsewhere) << "the library has gone: better the package than nothing";
}

}  // namespace
}  // namespace ceems::exporter::gpu
