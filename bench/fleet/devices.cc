#include "bench/fleet/devices.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ceems::bench::fleet {
namespace {

using ceems::fleet::JobMember;
using ceems::fleet::StragglerKind;

constexpr std::size_t kGpus = 4;
constexpr double kClock = 1.98e9;  // Hz
constexpr double kWatts = 700;     // the power limit
constexpr double kIdleWatts = 80;
constexpr double kSilicon = 0.02;  // of the clock at the power limit
constexpr double kLeakage = 0.03;  // of the power below it
constexpr double kMissing = 0.01;
constexpr double kFewer = 0.2;         // jobs without a kind of series
constexpr double kSilent = 0.25;       // slow GPUs without a reason
constexpr double kPowerOfClock = 2.2;  // exponent: voltage falls with the clock

class Simulation {
 public:
  Simulation(Fault fault, std::size_t windows, std::mt19937_64& random)
      : fault_(fault), windows_(windows), random_(random) {}

  SimulatedJob run() {
    nodes_ = static_cast<std::size_t>(std::llround(std::exp2(uniform(2, 6))));
    has_activity_ = !chance(kFewer);
    has_reasons_ = !chance(kFewer);
    spins_ = uniform(0.3, 1);  // of the power that a GPU draws while it waits
    noise_ = uniform(0.003, 0.01);
    for (std::size_t i = 0; i < nodes_ * kGpus; ++i) {
      gpus_.push_back({.silicon = std::clamp(normal(1), -4.0, 4.0), .leak = normal(1)});
      job_.members.push_back({.node = fmt::format("g{:03}", i / kGpus),
                              .device = std::to_string(i % kGpus),
                              .device_class = "gpu"});
    }
    for (std::size_t node = 0; node < nodes_; ++node) {
      job_.members.push_back({.node = job_.members[node * kGpus].node, .device_class = "node"});
    }
    choose_fault();
    for (std::size_t window = 0; window < windows_; ++window) {
      if (window == 0 || chance(busy_ < 0.3 ? 0.5 : 0.1)) {
        bound_ = uniform(0, 1);
        busy_ = chance(0.15) ? uniform(0.02, 0.3) : uniform(0.5, 0.98);  // reads or writes files
      }
      add_window(window);
    }
    return std::move(job_);
  }

 private:
  struct Gpu {
    double silicon = 0;  // standard deviations
    double leak = 0;
    double slower = 0;
    double work = 1;
    bool hot = false;
  };

  double uniform(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random_);
  }
  double normal(double deviation) {
    return std::normal_distribution<double>(0, deviation)(random_);
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  std::size_t any(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }

  void choose_fault() {
    job_.from = chance(0.5) ? 0 : 8 + any(15);
    const std::size_t node = any(nodes_);
    const auto of_node = [&](std::size_t which) {
      for (std::size_t gpu = 0; gpu < kGpus; ++gpu) {
        job_.at_fault.push_back(which * kGpus + gpu);
      }
    };
    switch (fault_) {
      case Fault::kNone:
      case Fault::kMaster:
        return;
      case Fault::kSlow5:
      case Fault::kSlow10:
      case Fault::kSlow20:
        job_.kind = StragglerKind::kSlowDevice;
        job_.at_fault = {node * kGpus + any(kGpus)};
        break;
      case Fault::kHotRack:
        job_.kind = StragglerKind::kSlowDevice;
        for (std::size_t i = 0; i < std::max<std::size_t>(1, nodes_ / 4); ++i) {
          of_node((node + i) % nodes_);
        }
        break;
      case Fault::kImbalance:
        job_.kind = StragglerKind::kImbalance;
        of_node(node);
        break;
      case Fault::kWaits:
        job_.kind = StragglerKind::kWaits;
        job_.from = 12 + any(12);
        of_node(node);
        break;
      case Fault::kBadCable:
        job_.kind = StragglerKind::kFabricOrDisk;
        job_.at_fault = {gpus_.size() + node};
        break;
    }
    silent_ = chance(kSilent);
    power_reason_ = chance(0.3);
  }

  void begin_fault() {
    for (const std::size_t place : job_.at_fault) {
      if (place >= gpus_.size()) {
        return;
      }
      Gpu& gpu = gpus_[place];
      switch (fault_) {
        case Fault::kSlow5:
          gpu.slower = 0.05;
          break;
        case Fault::kSlow10:
          gpu.slower = 0.1;
          break;
        case Fault::kSlow20:
          gpu.slower = 0.2;
          break;
        case Fault::kHotRack:
          gpu.slower = uniform(0.06, 0.15);
          break;
        case Fault::kImbalance:
          gpu.work = 1.25;
          break;
        case Fault::kWaits:
          gpu.work = 0.6;
          break;
        default:
          break;
      }
      gpu.hot = gpu.slower > 0 && !silent_;
    }
  }

  /// A value that is sometimes missing.
  std::optional<double> read(double value, double noise) {
    const double read = value * (1 + normal(noise));
    return chance(kMissing) ? std::nullopt : std::optional(read);
  }

  void add_window(std::size_t window) {
    if (window == job_.from) {
      begin_fault();
    }
    const bool faulty = window >= job_.from;
    const double stalled = fault_ == Fault::kBadCable && faulty ? 0.15 : 0;
    std::vector<double> clock(gpus_.size());
    std::vector<double> seconds(gpus_.size());
    double slowest = 0;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const Gpu& gpu = gpus_[i];
      clock[i] = (1 + bound_ * kSilicon * gpu.silicon) * (1 - gpu.slower);
      const bool master = fault_ == Fault::kMaster && i < kGpus;
      // What is not bound by the clock depends on it less.
      seconds[i] = gpu.work * (master ? 0.15 : 1) / std::pow(clock[i], 0.3 + 0.7 * bound_) *
                   (1 + normal(noise_));
      slowest = std::max(slowest, seconds[i]);
    }
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const Gpu& gpu = gpus_[i];
      JobMember& member = job_.members[i];
      const double works = seconds[i] / slowest;
      const double full = kWatts * (0.6 + 0.4 * bound_) * (1 + (1 - bound_) * kLeakage * gpu.leak) *
                          std::pow(1 - gpu.slower, kPowerOfClock);
      const double active = busy_ * (1 - stalled);
      const double watts =
          kIdleWatts + (full - kIdleWatts) * active * (works + (1 - works) * spins_);
      member.clock.push_back(read(kClock * clock[i], 0.003));
      member.power.push_back(read(watts, 0.01));
      if (has_activity_) {
        member.activity.push_back(read(active * works, 0.005));
      }
      member.idle_watts = kIdleWatts;
      if (has_reasons_) {
        add_reasons(member, gpu);
      }
    }
    for (std::size_t node = 0; node < nodes_; ++node) {
      const bool cable =
          fault_ == Fault::kBadCable && faulty && job_.at_fault.front() == gpus_.size() + node;
      job_.members[gpus_.size() + node].errors["link"].push_back(
          chance(cable ? 0.9 : 0.005) ? std::floor(uniform(1, 50)) : 0);
    }
    job_.computes.push_back(busy_ >= 0.1);
  }

  void add_reasons(JobMember& member, const Gpu& gpu) {
    const double capped = std::clamp(bound_ * 1.3 - 0.4 - 0.1 * gpu.silicon, 0.0, 1.0);
    const double fault = gpu.hot ? uniform(0.3, 1) : 0;
    const double brief = chance(0.005) ? uniform(0, 0.4) : 0;  // healthy ones, in the heat
    member.throttled["power_cap"].push_back(gpu.slower > 0 && power_reason_ ? 1 : capped);
    member.throttled["hardware_thermal"].push_back(power_reason_ ? 0 : fault);
    member.throttled["power_brake"].push_back(power_reason_ ? fault : 0);
    member.throttled["software_thermal"].push_back(brief);
  }

  Fault fault_;
  std::size_t windows_;
  std::mt19937_64& random_;
  SimulatedJob job_;
  std::vector<Gpu> gpus_;
  std::size_t nodes_ = 0;
  bool has_activity_ = true;
  bool has_reasons_ = true;
  bool silent_ = false;
  bool power_reason_ = false;
  double spins_ = 1;
  double noise_ = 0;
  double bound_ = 0;  // 1: by the power limit; 0: by memory
  double busy_ = 1;
};

}  // namespace

std::string_view name_of(Fault fault) {
  constexpr std::array<std::string_view, 9> kNames{
      "none",      "slow GPU -5 %", "slow GPU -10 %", "slow GPU -20 %", "hot rack",
      "imbalance", "waiting node",  "bad cable",      "none (master)"};
  return kNames.at(static_cast<std::size_t>(fault));
}

SimulatedJob simulate_job(Fault fault, std::size_t windows, std::mt19937_64& random) {
  return Simulation(fault, windows, random).run();
}

}  // namespace ceems::bench::fleet
