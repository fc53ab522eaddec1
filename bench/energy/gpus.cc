#include "energy/gpus.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "energy/report.h"
#include "exporter/energy/account/account.h"
#include "exporter/gpu/shared_power.h"

namespace ceems::bench::energy {
namespace {

using exporter::energy::Account;
using exporter::energy::DeviceSample;
using exporter::energy::Domain;

enum class Sharing : std::uint8_t { kMps, kInstances, kTimeSlices };
constexpr std::array<std::string_view, 3> kSharingNames = {"MPS", "MIG", "time slices"};

enum class Kind : std::uint8_t { kDense, kMemory, kLight, kIdle };
constexpr std::size_t kKinds = 4;
constexpr std::array<std::string_view, kKinds> kKindNames = {"dense", "memory-bound", "light",
                                                             "idle"};

constexpr double kIdlePower = 75;  // watts of the GPU
constexpr double kAwake = 45;      // once any kernel runs: clocks of the parts that all share
constexpr double kOverlap = 0.2;   // of the active power that MPS saves if jobs run together
constexpr double kSwitch = 40;     // watts if jobs take turns all the time
constexpr double kSampling = 0.1;  // error of a process's utilisation, which is sampled
constexpr std::size_t kSlots = 4;  // jobs at a time
constexpr double kWarmUp = 120;    // without jobs

/// What a job does with the GPU.
struct GpuJob {
  std::size_t number = 0;
  Kind kind = Kind::kIdle;
  double part = 0;  ///< of the SMs that it holds
  double begin = 0;
  double end = 0;
  double busy = 0;   ///< part of the time in which its kernels run, if it is alone
  double watts = 0;  ///< of its kernels on the whole GPU
  double phase = 0;  ///< seconds of work and of rest by turns; 0: no rest
  double truth = 0;
};

double uniform(std::mt19937_64& random, double from, double to) {
  return std::uniform_real_distribution(from, to)(random);
}

GpuJob random_job(double begin, double part, std::mt19937_64& random) {
  GpuJob job;
  job.part = part;
  job.begin = begin;
  job.end = begin + uniform(random, 300, 1500);
  job.kind = static_cast<Kind>(std::uniform_int_distribution<std::size_t>(0, kKinds - 1)(random));
  switch (job.kind) {
    case Kind::kDense:
      job.busy = uniform(random, 0.85, 1);
      job.watts = uniform(random, 420, 560);
      break;
    case Kind::kMemory:
      job.busy = uniform(random, 0.85, 1);
      job.watts = uniform(random, 260, 380);
      break;
    case Kind::kLight:
      job.busy = uniform(random, 0.1, 0.4);
      job.watts = uniform(random, 300, 450);
      break;
    case Kind::kIdle:
      job.busy = 0;
      break;
  }
  job.phase = std::bernoulli_distribution(0.3)(random) ? uniform(random, 20, 90) : 0;
  return job;
}

double busy_of(const GpuJob& job, double time) {
  const bool rests = job.phase > 0 && std::fmod(time - job.begin, 2 * job.phase) >= job.phase;
  return rests ? 0 : job.busy;
}

/// Parts of the GPU's time and SMs that jobs use, and the power that follows.
struct Load {
  std::array<double, kSlots> use{};
  double watts = kIdlePower;
  double all = 0;
};

Load load_of(Sharing sharing,
             const std::array<GpuJob*, kSlots>& jobs,
             double time,
             std::size_t without) {
  Load load;
  double wanted = 0;
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (jobs.at(i) != nullptr && i != without) {
      const double busy = busy_of(*jobs.at(i), time);
      load.use.at(i) = sharing == Sharing::kInstances ? busy * jobs.at(i)->part : busy;
      wanted += load.use.at(i);
    }
  }
  // Together they cannot use more than the GPU.
  const double scale = wanted > 1 ? 1 / wanted : 1;
  for (std::size_t i = 0; i < kSlots; ++i) {
    load.use.at(i) *= scale;
    load.all += load.use.at(i);
    if (load.use.at(i) > 0) {
      load.watts += load.use.at(i) * jobs.at(i)->watts;
    }
  }
  load.watts += kAwake * std::min(1.0, 4 * load.all);
  const double alone = *std::ranges::max_element(load.use);
  if (sharing == Sharing::kMps) {  // kernels of several jobs run together and wait for memory
    load.watts = kIdlePower + (load.watts - kIdlePower) * (1 - kOverlap * (load.all - alone));
  } else if (sharing == Sharing::kTimeSlices) {  // switching costs
    load.watts += kSwitch * (load.all - alone);
  }
  return load;
}

class Gpu {
 public:
  Gpu(Sharing sharing, std::uint64_t seed)
      : sharing_(sharing), random_(seed), watts_(sharing != Sharing::kInstances) {
    // Instances of 3/7, 2/7, 1/7 and 1/7, or equal parts.
    parts_ = sharing == Sharing::kInstances ? std::array{3.0 / 7, 2.0 / 7, 1.0 / 7, 1.0 / 7}
                                            : std::array{0.25, 0.25, 0.25, 0.25};
    free_.fill(kWarmUp);
    for (double& free : free_) {
      free += uniform(random_, 0, 600);
    }
    jobs_.reserve(1000);
  }

  void run(double seconds) {
    for (double time = 0; time < seconds; time += 1) {
      step(time);
    }
  }

  void report(std::array<Errors, kKinds>& ours, std::array<Errors, kKinds>& equal) const {
    for (const GpuJob& job : jobs_) {
      if (job.truth > 0) {
        ours.at(static_cast<std::size_t>(job.kind)).add(charges_.at(job.number), job.truth);
        equal.at(static_cast<std::size_t>(job.kind)).add(equal_.at(job.number), job.truth);
      }
    }
  }
  [[nodiscard]] double idle_error() const {
    return 100 * (account_.idle_watts(Domain::kGpu).value_or(0) / kIdlePower - 1);
  }

 private:
  /// A utilisation as the driver shows it: in whole percent, and sampled unless the hardware
  /// counts.
  double shown(double use) {
    const double error =
        sharing_ == Sharing::kInstances ? 0 : uniform(random_, -kSampling, kSampling);
    return std::round(100 * use * (1 + error)) / 100;
  }

  void step(double time) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      GpuJob*& job = running_.at(slot);
      if (job != nullptr && time >= job->end) {
        job = nullptr;
        free_.at(slot) = time + uniform(random_, 5, 300);
      }
      if (job == nullptr && time >= free_.at(slot) && jobs_.size() < jobs_.capacity()) {
        jobs_.push_back(random_job(time, parts_.at(slot), random_));
        job = &jobs_.back();
        job->number = jobs_.size() - 1;
        charges_.push_back(0);
        equal_.push_back(0);
      }
    }
    const Load load = load_of(sharing_, running_, time, kSlots);
    charge_truth(load, time);
    charge_ours(load, time);
  }

  /// Idle power by the part that is held, and marginal power, scaled to the GPU's.
  void charge_truth(const Load& load, double time) {
    std::array<double, kSlots> marginal{};
    double sum = 0;
    double count = 0;
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (running_.at(i) != nullptr) {
        marginal.at(i) = std::max(0.0, load.watts - load_of(sharing_, running_, time, i).watts);
        // Where jobs crowd out each other, the others would take the time: then its own work
        // counts.
        marginal.at(i) = std::max(marginal.at(i), load.use.at(i) * running_.at(i)->watts);
        sum += marginal.at(i);
        count += 1;
      }
    }
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (GpuJob* job = running_.at(i)) {
        // Without instances, all who are there hold the GPU together.
        const double part = sharing_ == Sharing::kInstances ? job->part : 1 / count;
        job->truth +=
            kIdlePower * part + (sum > 0 ? (load.watts - kIdlePower) * marginal.at(i) / sum : 0);
        equal_.at(job->number) += load.watts / count;
      }
    }
  }

  void charge_ours(const Load& load, double time) {
    const auto now = Clock::SteadyTime(std::chrono::seconds(3600 + static_cast<int>(time)));
    exporter::UnitSnapshot snapshot;
    snapshot.manager = "slurm";
    snapshot.taken = now;
    DeviceSample device{.source = {.name = "gpu-0", .domain = Domain::kGpu},
                        .joules = std::round(load.watts * 1000) / 1000,
                        .seconds = 1,
                        .fresh = now};
    double count = 0;
    for (const GpuJob* job : running_) {
      count += job != nullptr ? 1 : 0;
    }
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (const GpuJob* job = running_.at(i)) {
        exporter::Unit& unit = snapshot.units.emplace_back();
        unit.id = unit.uuid = std::to_string(job->number);

        device.holders.push_back({.manager = "slurm",
                                  .cgrouphostname = "",
                                  .uuid = unit.uuid,
                                  .alloc = sharing_ == Sharing::kInstances ? job->part : 1 / count,
                                  .use = shown(load.use.at(i))});
        device.total_use += device.holders.back().use;
      }
    }
    device.utilisation = std::min(1.0, std::round(100 * load.all) / 100);
    watts_.weigh(device);
    const exporter::energy::ManagerUnits manager{.manager = "slurm", .snapshot = &snapshot};
    account_.advance({.time = now,
                      .readings = {},
                      .node = {.busy_cpus = 1, .cpus_online = 64},
                      .managers = {&manager, 1},
                      .devices = {&device, 1}});
    for (const auto& unit : account_.units()) {
      charges_.at(std::stoull(unit->uuid)) = unit->joules(Domain::kGpu);
    }
    account_.mark_scraped();
  }

  Sharing sharing_;
  std::mt19937_64 random_;
  std::array<double, kSlots> parts_{};
  std::array<double, kSlots> free_{};
  std::array<GpuJob*, kSlots> running_{};
  std::vector<GpuJob> jobs_;  // never reallocated
  std::vector<double> charges_;
  std::vector<double> equal_;
  Account account_{{}};
  exporter::gpu::DeviceWatts watts_;
};

}  // namespace

void simulate_gpus(std::uint64_t nodes, double seconds, std::uint64_t seed) {
  std::array<std::array<Errors, kKinds>, kSharingNames.size()> ours;
  std::array<std::array<Errors, kKinds>, kSharingNames.size()> equal;
  std::array<std::vector<double>, kSharingNames.size()> idle;
  for (std::size_t sharing = 0; sharing < kSharingNames.size(); ++sharing) {
    for (std::uint64_t node = 0; node < nodes; ++node) {
      Gpu gpu(static_cast<Sharing>(sharing), seed + node);
      gpu.run(seconds);
      gpu.report(ours.at(sharing), equal.at(sharing));
      idle.at(sharing).push_back(gpu.idle_error());
    }
  }
  fmt::print("\n**GPUs with several jobs each**\n\n| ours / equal parts |");
  for (const std::string_view name : kSharingNames) {
    fmt::print(" {} |", name);
  }
  fmt::print("\n|---|---|---|---|\n");
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    fmt::print("| {} |", kKindNames.at(kind));
    for (std::size_t sharing = 0; sharing < kSharingNames.size(); ++sharing) {
      const Errors& mine = ours.at(sharing).at(kind);
      const Errors& others = equal.at(sharing).at(kind);
      fmt::print(" {:+.0f} ({:.0f}) / {:+.0f} ({:.0f}) |", mine.bias(), mine.mean_error(),
                 others.bias(), others.mean_error());
    }
    fmt::print("\n");
  }
  fmt::print("| idle power: largest error |");
  for (const auto& errors : idle) {
    fmt::print(" {:+.1f} |",
               *std::ranges::max_element(errors, {}, [](double e) { return std::abs(e); }));
  }
  fmt::print("\n");
}

}  // namespace ceems::bench::energy
