#include "energy/node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace ceems::bench::energy {
namespace {

constexpr double kSystemLoad = 0.3;       // CPUs that the operating system keeps busy
constexpr double kSystemCoreWatts = 1.5;  // per busy CPU
constexpr double kSystemBytes = 6e9;

double uniform(std::mt19937_64& random, double from, double to) {
  return std::uniform_real_distribution(from, to)(random);
}

std::size_t one_of(std::mt19937_64& random, std::initializer_list<std::size_t> choices) {
  const auto at = std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(random);
  return *(choices.begin() + at);
}

/// Seconds that a job of the class runs.
double random_length(JobClass what, bool small, std::mt19937_64& random) {
  switch (what) {
    case JobClass::kTenSeconds:
      return 10;
    case JobClass::kTwoSeconds:
      return 2;
    case JobClass::kSubSecond:
      return 0.35;
    default:
      return small ? uniform(random, 60, 300) : uniform(random, 400, 2400);
  }
}

JobClass random_class(const Weights& weights, std::mt19937_64& random) {
  std::discrete_distribution<std::size_t> classes(weights.begin(), weights.end());
  return static_cast<JobClass>(classes(random));
}

std::size_t random_cores(JobClass what,
                         const Hardware& hardware,
                         bool small,
                         std::mt19937_64& random) {
  if (what == JobClass::kSingleThread) {
    return 1;
  }
  const std::size_t most = small           ? hardware.sockets * hardware.cores / 8
                           : is_long(what) ? hardware.cores / 2
                                           : hardware.cores / 8;
  return std::uniform_int_distribution<std::size_t>(1, std::max<std::size_t>(most, 1))(random);
}

}  // namespace

std::string_view to_string(JobClass what) {
  static constexpr std::array<std::string_view, kClassCount> kNames = {
      "compute",       "scalar", "memory-bound", "phased", "idle reservation",
      "single thread", "10 s",   "2 s",          "0.35 s"};
  return kNames.at(static_cast<std::size_t>(what));
}

bool is_long(JobClass what) {
  return what < JobClass::kTenSeconds;
}

Hardware random_hardware(std::mt19937_64& random) {
  Hardware hardware;
  hardware.sockets = one_of(random, {1, 2, 2});
  hardware.cores = one_of(random, {16, 24, 32, 48, 64});
  hardware.threads = one_of(random, {1, 2});
  const auto cores = static_cast<double>(hardware.cores);
  hardware.package_idle = uniform(random, 0.8, 1.4) * (15 + cores);
  hardware.package_awake = uniform(random, kLeastAwake, kMaxAwake);
  hardware.turbo = uniform(random, 0.1, 0.35);
  hardware.sibling = uniform(random, 0.1, 0.35);
  hardware.dram_idle = uniform(random, 8, 18);
  hardware.memory_bytes = cores * static_cast<double>(hardware.sockets) * 4e9;
  hardware.board = uniform(random, 30, 90);
  hardware.fans = uniform(random, 0.02, 0.1);
  hardware.supply = uniform(random, 0.9, 0.95);
  return hardware;
}

double Job::load(double time) const {
  switch (what) {
    case JobClass::kIdle:
      return pace * 0.002;
    case JobClass::kPhased:
      return std::fmod(time - begin, 2 * phase_seconds) < phase_seconds ? pace : pace * 0.05;
    default:
      return pace * 0.99;
  }
}

double Job::gpu_load(double time) const {
  constexpr double kRest = 0.15;  // of a phase, to read and to write
  const bool rests =
      phase_seconds > 0 && std::fmod(time - begin, phase_seconds) < kRest * phase_seconds;
  return rests ? 0.05 : 0.97;
}

double Job::threads_busy(const Hardware& hardware) const {
  const bool one = what == JobClass::kSingleThread || what == JobClass::kIdle;
  return one ? 1 : static_cast<double>(hardware.threads);
}

std::vector<Job> random_jobs(const Hardware& hardware,
                             double seconds,
                             double occupied,
                             std::mt19937_64& random,
                             const Weights& weights,
                             double pause,
                             bool small) {
  std::vector<Job> jobs;
  // When each core becomes free.
  std::vector<std::vector<double>> free(hardware.sockets, std::vector<double>(hardware.cores, 0.0));
  double time = uniform(random, 0, 30);
  while (time < seconds) {
    double used = 0;
    for (const auto& socket : free) {
      used +=
          static_cast<double>(std::ranges::count_if(socket, [&](double t) { return t > time; }));
    }
    const auto all = static_cast<double>(hardware.sockets * hardware.cores);
    Job job;
    job.what = random_class(weights, random);
    job.cores = random_cores(job.what, hardware, small, random);
    job.socket = std::uniform_int_distribution<std::size_t>(0, hardware.sockets - 1)(random);
    const bool fits = !is_long(job.what) || used + static_cast<double>(job.cores) <= occupied * all;
    auto& cores = free[job.socket];
    std::size_t run = 0;
    std::size_t at = 0;
    for (; at < cores.size() && run < job.cores; ++at) {
      run = cores[at] <= time ? run + 1 : 0;
    }
    if (fits && run == job.cores) {
      job.first_core = at - run;
      job.begin = time;
      job.end = std::min(seconds, time + random_length(job.what, small, random));
      switch (job.what) {
        case JobClass::kScalar:
        case JobClass::kSingleThread:
          job.core_watts = uniform(random, 1.4, 2.2);
          break;
        case JobClass::kMemory:
          job.core_watts = uniform(random, 1.2, 1.8);
          job.dram_watts = uniform(random, 0.3, 0.7);
          break;
        default:
          job.core_watts = uniform(random, 2.0, 3.2);
          job.dram_watts = uniform(random, 0, 0.1);
          break;
      }
      job.phase_seconds = uniform(random, 60, 200);
      const double share = static_cast<double>(job.cores) / all;
      job.memory_limit = share * hardware.memory_bytes;
      job.memory_bytes = job.memory_limit * uniform(random, 0.1, 0.9);
      for (std::size_t core = 0; core < job.cores; ++core) {
        cores[job.first_core + core] = job.end;
      }
      job.number = jobs.size();
      jobs.push_back(job);
    }
    time += std::exponential_distribution(1 / pause)(random);
  }
  return jobs;
}

std::vector<int> cpus_of(const Job& job, const Hardware& hardware) {
  std::vector<int> cpus;
  for (std::size_t thread = 0; thread < hardware.threads; ++thread) {
    for (std::size_t core = 0; core < job.cores; ++core) {
      const std::size_t place = job.socket * hardware.cores + job.first_core + core;
      cpus.push_back(static_cast<int>(thread * hardware.sockets * hardware.cores + place));
    }
  }
  return cpus;
}

host::CpuTopology topology_of(const Hardware& hardware) {
  host::CpuTopology topology;
  topology.cores = hardware.sockets * hardware.cores;
  for (std::size_t socket = 0; socket < hardware.sockets; ++socket) {
    topology.packages.push_back(static_cast<int>(socket));
  }
  for (std::size_t cpu = 0; cpu < topology.cores * hardware.threads; ++cpu) {
    const std::size_t core = cpu % topology.cores;
    topology.cpus.push_back(
        {.socket = static_cast<int>(core / hardware.cores), .core = static_cast<int>(core)});
  }
  return topology;
}

Node::Node(const Hardware& hardware, std::vector<Job> jobs)
    : hardware_(hardware),
      jobs_(std::move(jobs)),
      busy_of_ended_(hardware.sockets * hardware.cores * hardware.threads),
      package_joules_(hardware.sockets),
      dram_joules_(hardware.sockets),
      gpu_joules_(hardware.gpus) {
  power_.busy_cores.resize(hardware.sockets);
  power_.package.resize(hardware.sockets);
  power_.dram.resize(hardware.sockets);
  power_.gpu.resize(hardware.gpus);
  idle_wall_ = wall_watts(std::vector<SocketLoad>(hardware.sockets), 0);
}

Node::SocketLoad Node::load_of(const Job& job) const {
  const double load = job.load(time_);
  const double second = job.threads_busy(hardware_) > 1 ? hardware_.sibling : 0;
  const double busy = load * static_cast<double>(job.cores);
  return {.core_watts = busy * job.core_watts * (1 + second),
          .busy_cores = busy,
          .dram_watts = busy * job.dram_watts};
}

double Node::package_watts(const SocketLoad& load) const {
  if (load.busy_cores <= 0) {
    return hardware_.package_idle;
  }
  const double full = std::min(1.0, load.busy_cores / static_cast<double>(hardware_.cores));
  // The first core wakes what the socket's cores share, and clocks fall as more cores work.
  const double awake = hardware_.package_awake * std::min(1.0, load.busy_cores);
  return hardware_.package_idle + awake +
         load.core_watts * (1 + hardware_.turbo * (1 - full)) / (1 + hardware_.turbo / 2);
}

/// `gpu_watts`: of all GPUs above their idle power.
double Node::wall_watts(const std::vector<SocketLoad>& loads, double gpu_watts) const {
  double idle = static_cast<double>(hardware_.gpus) * hardware_.gpu_idle;
  double inside = idle + gpu_watts;
  for (const SocketLoad& load : loads) {
    inside += package_watts(load) + hardware_.dram_idle + load.dram_watts;
    idle += hardware_.package_idle + hardware_.dram_idle;
  }
  return (inside + hardware_.board + hardware_.fans * (inside - idle)) / hardware_.supply;
}

double Node::gpu_load(std::size_t gpu) const {
  double load = 0;
  for (const std::size_t position : running_) {
    const Job& job = jobs_[position];
    load += job.first_gpu <= gpu && gpu < job.first_gpu + job.gpus ? job.gpu_load(time_) : 0;
  }
  return load;
}

void Node::add_busy(const Job& job, double back, std::vector<double>& seconds) const {
  const std::vector<int> cpus = cpus_of(job, hardware_);
  const double threads = static_cast<double>(job.cores) * job.threads_busy(hardware_);
  const double used = job.cpu_seconds - back * job.busy_cpus;
  for (std::size_t i = 0; i < static_cast<std::size_t>(threads); ++i) {
    seconds[static_cast<std::size_t>(cpus[i])] += used / threads;
  }
}

std::vector<host::BusyCpu> Node::busy_cpus(double back) const {
  std::vector<double> seconds = busy_of_ended_;
  for (const std::size_t job : running_) {
    add_busy(jobs_[job], back, seconds);
  }
  const double system = kSystemLoad * (time_ - back) / static_cast<double>(seconds.size());
  std::vector<host::BusyCpu> cpus;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    cpus.push_back({.cpu = static_cast<int>(i),
                    .ticks = static_cast<std::uint64_t>((seconds[i] + system) * 100)});
  }
  return cpus;
}

void Node::advance(double step) {
  while (next_ < jobs_.size() && jobs_[next_].begin <= time_) {
    running_.push_back(next_++);
  }
  std::erase_if(running_, [this](std::size_t job) {
    const bool ended = jobs_[job].end <= time_;
    if (ended) {
      add_busy(jobs_[job], 0, busy_of_ended_);
    }
    return ended;
  });

  // The operating system is spread over the sockets.
  const double system = kSystemLoad / static_cast<double>(hardware_.sockets);
  std::vector<SocketLoad> loads(hardware_.sockets,
                                {.core_watts = system * kSystemCoreWatts, .busy_cores = system});
  double gpu_watts = 0;
  power_.gpu.assign(hardware_.gpus, hardware_.gpu_idle);
  const auto of_gpus = [this](const Job& job) { return job.gpu_watts * job.gpu_load(time_); };
  memory_used_ = kSystemBytes;
  busy_seconds_ += kSystemLoad * step;
  for (const std::size_t position : running_) {
    Job& job = jobs_[position];
    const SocketLoad load = load_of(job);
    SocketLoad& sum = loads[job.socket];
    sum.core_watts += load.core_watts;
    sum.busy_cores += load.busy_cores;
    sum.dram_watts += load.dram_watts;
    job.busy_cpus = load.busy_cores * job.threads_busy(hardware_);
    const double used = job.busy_cpus * step;
    job.cpu_seconds += used;
    busy_seconds_ += used;
    memory_used_ += job.memory_bytes;
    for (std::size_t gpu = job.first_gpu; gpu < job.first_gpu + job.gpus; ++gpu) {
      power_.gpu[gpu] += of_gpus(job);
      gpu_watts += of_gpus(job);
    }
  }
  for (std::size_t socket = 0; socket < hardware_.sockets; ++socket) {
    power_.busy_cores[socket] = loads[socket].busy_cores;
    power_.package[socket] = package_watts(loads[socket]);
    power_.dram[socket] = hardware_.dram_idle + loads[socket].dram_watts;
    package_joules_[socket] += power_.package[socket] * step;
    dram_joules_[socket] += power_.dram[socket] * step;
  }
  for (std::size_t gpu = 0; gpu < hardware_.gpus; ++gpu) {
    gpu_joules_[gpu] += power_.gpu[gpu] * step;
  }
  power_.wall = wall_watts(loads, gpu_watts);
  wall_joules_ += power_.wall * step;

  std::vector<double> marginal(running_.size());
  double sum = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const Job& job = jobs_[running_[i]];
    const SocketLoad load = load_of(job);
    std::vector<SocketLoad> without = loads;
    without[job.socket].core_watts -= load.core_watts;
    without[job.socket].busy_cores -= load.busy_cores;
    without[job.socket].dram_watts -= load.dram_watts;
    marginal[i] = std::max(0.0, power_.wall - wall_watts(without, gpu_watts));
    sum += marginal[i];
  }
  // That of the operating system.
  std::vector<SocketLoad> without = loads;
  for (SocketLoad& load : without) {
    load.core_watts = std::max(0.0, load.core_watts - system * kSystemCoreWatts);
    load.busy_cores = std::max(0.0, load.busy_cores - system);
  }
  sum += std::max(0.0, power_.wall - wall_watts(without, gpu_watts));
  const double gpu_at_wall = (1 + hardware_.fans) / hardware_.supply;
  const double scale = sum > 0 ? (power_.wall - idle_wall_ - gpu_at_wall * gpu_watts) / sum : 0;
  const auto all = static_cast<double>(hardware_.sockets * hardware_.cores);
  const double gpu_idle = hardware_.gpu_idle / hardware_.supply;
  const double rest = idle_wall_ - static_cast<double>(hardware_.gpus) * gpu_idle;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Job& job = jobs_[running_[i]];
    const auto gpus = static_cast<double>(job.gpus);
    job.truth_joules += step * (rest * static_cast<double>(job.cores) / all + scale * marginal[i] +
                                gpus * (gpu_idle + gpu_at_wall * of_gpus(job)));
  }
  time_ += step;
}

}  // namespace ceems::bench::energy
