// A node with meters that lie, and what the account makes of them.
#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "exporter/energy/meter/lies_test_support.h"
#include "exporter/energy/meter/power_model.h"
#include "exporter/energy/meter/reading_gate.h"

namespace ceems::exporter::energy {

/// What the parts of the node really draw, by socket. The job of a socket holds its GPU.
struct Truth {
  int second = 0;
  Clock::SteadyTime now{};
  std::array<double, 2> busy{};
  std::array<double, 2> package_watts{};
  std::array<double, 2> dram_watts{};
  std::array<double, 2> gpu_watts{};  // 0 where the node has none
  double node_watts = 0;
  std::array<double, 2> package_joules{};
  std::array<double, 2> dram_joules{};
  std::array<double, 2> gpu_joules{};
  std::array<double, 2> gpu_use{};
  double node_joules = 0;
  std::array<double, 2> job_joules{};
};

/// What measures the node.
struct Instruments {
  Meters meters = {};
  /// Called before the meters are read.
  std::function<void(const Truth&)> show = {};
  std::function<std::vector<DeviceSample>(const Truth&)> devices = {};
};

inline constexpr double kCores = 16;       // of each of two sockets
inline constexpr double kGpuIdle = 75;     // watts
inline constexpr double kGpuActive = 400;  // watts more at full use

inline std::uint64_t microjoules(double joules) {
  return static_cast<std::uint64_t>(1e9 + joules * 1e6);
}

/// A counter in a file.
class LyingCounter final : public EnergyMeter {
 public:
  /// `joules` and `twin` are what it should show and what another counter shows.
  LyingCounter(SourceInfo info,
               std::shared_ptr<const Truth> truth,
               const double& joules,
               const double& twin,
               CounterLie lie = {})
      : info_(std::move(info)),
        truth_(std::move(truth)),
        joules_(joules),
        twin_(twin),
        lie_(std::move(lie)) {}
  [[nodiscard]] const SourceInfo& source() const override { return info_; }
  Result<Reading> read(const MeterContext& context) override {
    const std::optional<std::uint64_t> raw =
        lie_ ? lie_(truth_->second, microjoules(joules_), microjoules(twin_))
             : std::optional(microjoules(joules_));
    if (!raw) {
      counter_.miss(context, info_);
      return fail(ErrorCode::kUnavailable, "no value");
    }
    return counter_.advance(*raw, context, info_);
  }

 private:
  SourceInfo info_;
  std::shared_ptr<const Truth> truth_;
  const double& joules_;
  const double& twin_;
  CounterLie lie_;
  MeteredCounter counter_{262'143'328'850, info_.domain == Domain::kPackage
                                               ? power_bound(info_.domain, 205)
                                               : power_bound(info_.domain)};
};

/// The usual counters of packages and memory. `lie`: of the second package.
inline Meters package_counters(const std::shared_ptr<const Truth>& truth,
                               const CounterLie& lie = {}) {
  Meters meters;
  for (std::size_t socket = 0; socket < 2; ++socket) {
    const auto number = static_cast<int>(socket);
    meters.push_back(std::make_shared<LyingCounter>(
        SourceInfo{.name = fmt::format("package-{}", number),
                   .domain = Domain::kPackage,
                   .socket = number},
        truth, truth->package_joules.at(socket), truth->package_joules.at(1 - socket),
        socket == 1 ? lie : CounterLie{}));
    meters.push_back(std::make_shared<LyingCounter>(
        SourceInfo{
            .name = fmt::format("dram-{}", number), .domain = Domain::kDram, .socket = number},
        truth, truth->dram_joules.at(socket), truth->dram_joules.at(1 - socket)));
  }
  return meters;
}

/// Two sockets with a job each, one of which changes its load.
class LyingNode {
 public:
  /// Its parts read `truth`, which the node keeps up to date.
  LyingNode(std::shared_ptr<Truth> truth, Instruments instruments)
      : truth_(std::move(truth)), instruments_(std::move(instruments)) {
    Meters& meters = instruments_.meters;
    meters.push_back(
        std::make_shared<ModelMeter>(PowerModel{.idle_watts = 200, .full_watts = 600}));
    for (const auto& meter : meters) {
      account_.add_source(meter->source());
    }
    gate_ = std::make_unique<ReadingGate>(meters, NodeLimits{.idle_watts = 200, .full_watts = 600});
    readings_.resize(meters.size());
    for (int i = 0; i < 2; ++i) {
      Unit& unit = snapshot_.units.emplace_back();
      unit.uuid = std::to_string(i);
      unit.stats.reserved_cpus = kCores;
      unit.stats.memory_total_bytes = 32e9;
      std::vector<int> cpus(static_cast<std::size_t>(kCores));
      for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
        cpus[cpu] = static_cast<int>(cpu) + i * static_cast<int>(kCores);
      }
      unit.stats.cpu_set = std::make_shared<const std::vector<int>>(std::move(cpus));
      unit.started = Clock::SystemTime{std::chrono::seconds(1'767'225'000)};
    }
  }

  /// Joules of the two jobs at the end.
  std::array<double, 2> run(int times = 1) {
    for (int second = 0; second <= times * kEnd; second += kTick) {
      step(second);
    }
    std::array<double, 2> joules{};
    for (const auto& unit : account_.units()) {
      joules.at(unit->uuid == "0" ? 0 : 1) = unit->joules(Domain::kNode);
    }
    return joules;
  }
  [[nodiscard]] const std::array<double, 2>& true_joules() const { return truth_->job_joules; }
  /// What was not believed, in words.
  [[nodiscard]] std::string doubts() const {
    std::string all;
    for (std::size_t i = 0; i < instruments_.meters.size(); ++i) {
      for (std::size_t doubt = 0; doubt < kDoubtCount; ++doubt) {
        if (const auto count = gate_->source(i).excluded(static_cast<Doubt>(doubt)); count > 0) {
          all += fmt::format("{} {} {}, ", instruments_.meters[i]->source().name,
                             to_string(static_cast<Doubt>(doubt)), count);
        }
      }
    }
    return all;
  }

 private:
  void step(int second) {
    Truth& truth = *truth_;
    const double seconds = second - std::exchange(truth.second, second);
    truth.now = Clock::SteadyTime{std::chrono::seconds(1'000 + second)};
    truth.busy = {12, std::floor(noise(second / 90, 3) * 15) + 0.5};
    truth.gpu_use = {0.7, std::floor(noise(second / 75, 4) * 10) / 10};
    double parts = 0;
    for (std::size_t socket = 0; socket < 2; ++socket) {
      const double busy = truth.busy.at(socket);
      const double flicker = 1 + 0.01 * (noise(second, 10 + static_cast<int>(socket)) - 0.5);
      truth.package_watts.at(socket) = (60 + 9 * busy) * flicker;
      truth.dram_watts.at(socket) = (10 + busy) * flicker;
      truth.gpu_watts.at(socket) =
          instruments_.devices ? (kGpuIdle + kGpuActive * truth.gpu_use.at(socket)) * flicker : 0;
      truth.package_joules.at(socket) += truth.package_watts.at(socket) * seconds;
      truth.dram_joules.at(socket) += truth.dram_watts.at(socket) * seconds;
      truth.gpu_joules.at(socket) += truth.gpu_watts.at(socket) * seconds;
      truth.job_joules.at(socket) +=
          (30 + 1.1 * (70 + 10 * busy + truth.gpu_watts.at(socket))) * seconds;
      parts +=
          truth.package_watts.at(socket) + truth.dram_watts.at(socket) + truth.gpu_watts.at(socket);
      sockets_.at(socket) = {.cpus = kCores, .busy = busy, .cores = busy, .cores_max = kCores};
      snapshot_.units[socket].stats.cpu_user_seconds += busy * seconds;
      snapshot_.units[socket].stats.memory_used_bytes = 16'000'000'000;
    }
    for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
      const std::size_t socket = cpu < cpus_.size() / 2 ? 0 : 1;
      const double use = truth.busy.at(socket) / kCores;
      cpus_.at(cpu) = {.socket = static_cast<int>(socket), .busy = use, .cores = use};
    }
    truth.node_watts = 60 + 1.1 * parts;
    truth.node_joules += truth.node_watts * seconds;
    if (instruments_.show) {
      instruments_.show(truth);
    }
    read();
    snapshot_.taken = truth.now;
    snapshot_.wall = Clock::SystemTime{std::chrono::seconds(1'767'225'600 + second)};
    const std::array managers{ManagerUnits{.manager = "slurm", .snapshot = &snapshot_}};
    account_.advance({.time = truth.now,
                      .readings = readings_,
                      .node = {.busy_cpus = truth.busy[0] + truth.busy[1],
                               .cpus_online = 2 * kCores,
                               .memory_total_bytes = 64e9,
                               .cpus = cpus_,
                               .sockets = sockets_},
                      .managers = managers,
                      .devices = devices_});
  }

  void read() {
    const double utilisation = (truth_->busy[0] + truth_->busy[1]) / (2 * kCores);
    const Meters& meters = instruments_.meters;
    for (std::size_t i = 0; i < meters.size(); ++i) {
      const auto reading = meters[i]->read(
          {.now = truth_->now, .utilisation = utilisation, .gate = &gate_->gate(i)});
      readings_[i] = reading ? std::optional(*reading) : std::nullopt;
    }
    devices_ = instruments_.devices ? instruments_.devices(*truth_) : std::vector<DeviceSample>();
    double device_joules = 0;
    for (const DeviceSample& device : devices_) {
      device_joules += device.joules;
    }
    gate_->judge({.time = truth_->now,
                  .utilisation = utilisation,
                  .sockets = sockets_,
                  .device_joules = device_joules,
                  .devices = devices_.size(),
                  .readings = readings_});
  }

  std::shared_ptr<Truth> truth_;
  Instruments instruments_;
  std::unique_ptr<ReadingGate> gate_;
  Account account_{AccountOptions{}};
  UnitSnapshot snapshot_;
  std::vector<std::optional<Reading>> readings_;
  std::vector<DeviceSample> devices_;
  std::array<SocketUse, 2> sockets_{};
  std::array<CpuUse, 32> cpus_{};
};

/// How right the account has to be.
struct Demand {
  bool part = false;  ///< the liar is one of several, whose line may stand for it
  bool slow = false;  ///< it takes minutes to know that it stands still
  /// The least that an honest set of meters sees of what the jobs are due.
  double seen = 0.95;
  /// The most by which a lie may move the energy of a job.
  std::function<double(const std::string& name)> most = [](const std::string&) { return 0.05; };
  /// The lies after which the meter counts as if it were not there, besides a meter that never told
  /// the truth and is not a part.
  std::string absent = {};
};

/// Every lie against the same meters when they tell the truth. `make(lie, present)` returns the
/// Instruments that read the Truth; without `present`, the meter that lies is left out.
template <class Lie, class Make>
void expect_truth(const std::vector<Named<Lie>>& lies, const Demand& demand, const Make& make) {
  struct Run {
    std::array<double, 2> joules{};
    std::array<double, 2> due{};
    std::string doubts;
  };
  const auto run = [&](const Lie& lie, bool present, int times) {
    const auto truth = std::make_shared<Truth>();
    LyingNode node(truth, make(truth, lie, present));
    Run done{.joules = node.run(times), .due = node.true_joules(), .doubts = node.doubts()};
    return done;
  };
  const std::array<int, 2> times{1, kLong};
  std::array<Run, 2> honest;
  std::array<Run, 2> without;
  for (std::size_t i = 0; i < 2; ++i) {
    honest.at(i) = run({}, true, times.at(i));
    without.at(i) = run({}, false, times.at(i));
  }
  EXPECT_EQ(honest[0].doubts, "");
  for (std::size_t job = 0; job < 2; ++job) {
    EXPECT_GT(honest[0].joules.at(job) / honest[0].due.at(job), demand.seen);
    EXPECT_LT(honest[0].joules.at(job) / honest[0].due.at(job), 1.05);
  }
  for (const auto& [name, lie, always] : lies) {
    SCOPED_TRACE(name);
    const std::size_t length = demand.slow && name.starts_with("still") ? 1 : 0;
    ::testing::internal::CaptureStderr();
    const Run node = run(lie, true, times.at(length));
    const std::string log = ::testing::internal::GetCapturedStderr();
    const bool absent = (always && !demand.part) || name == demand.absent;
    const Run& expected = absent ? without.at(length) : honest.at(length);
    for (std::size_t job = 0; job < 2; ++job) {
      EXPECT_NEAR(node.joules.at(job) / expected.joules.at(job), 1, demand.most(name))
          << "job " << job << " " << node.doubts << "\n"
          << log;
    }
  }
}

}  // namespace ceems::exporter::energy
