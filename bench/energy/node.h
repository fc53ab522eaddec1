// A simulated node: what it draws, and what each of its jobs is to blame for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "host/cpu_topology.h"
#include "host/proc.h"

namespace ceems::bench::energy {

/// The kinds of jobs that a row of the table is about.
enum class JobClass : std::uint8_t {
  kCompute,       ///< all cores busy with vector code
  kScalar,        ///< all cores busy with plain code
  kMemory,        ///< waits for memory most of the time, which draws power itself
  kPhased,        ///< busy and waiting by turns, a minute or more each
  kIdle,          ///< reserves cores and does next to nothing
  kSingleThread,  ///< one thread on one core of which it has both hardware threads
  kTenSeconds,
  kTwoSeconds,
  kSubSecond,
};
inline constexpr std::size_t kClassCount = 9;
/// How often jobs of each class arrive, relative to each other.
using Weights = std::array<double, kClassCount>;
/// Units of seconds must come often to matter at all.
inline constexpr Weights kMixedJobs = {4, 4, 4, 3, 3, 4, 4, 4, 4};
std::string_view to_string(JobClass what);
/// Whether jobs of this class run for minutes or more, so that each has an error worth averaging.
bool is_long(JobClass what);

/// The power of hardware, in watts. Nothing in it is known to the program under test.
struct Hardware {
  std::size_t sockets = 2;
  std::size_t cores = 64;  ///< of a socket
  std::size_t threads = 2;
  double package_idle = 80;     ///< of a socket
  double package_awake = 8;     ///< of a socket once any core is busy
  double turbo = 0.25;          ///< how much more a busy core draws when it is alone on its socket
  double sibling = 0.25;        ///< what a second busy thread adds to its core, as a fraction
  double dram_idle = 14;        ///< of a socket
  double memory_bytes = 512e9;  ///< of the node
  double board = 60;            ///< network, disks, fans at rest
  double fans = 0.05;           ///< watts more per watt of packages and memory above idle
  double supply = 0.93;         ///< efficiency of the power supply
  std::size_t gpus = 0;
  double gpu_idle = 75;  ///< of each
};
/// Between which random nodes have their package_awake.
inline constexpr double kLeastAwake = 3;
inline constexpr double kMaxAwake = 12;
/// A node of a random size. The same generator gives the same nodes.
Hardware random_hardware(std::mt19937_64& random);

struct Job {
  std::size_t number = 0;
  JobClass what = JobClass::kCompute;
  double begin = 0;  ///< seconds since the start of the simulation
  double end = 0;
  std::size_t socket = 0;
  std::size_t first_core = 0;  ///< on the socket; the job has whole cores
  std::size_t cores = 1;
  double core_watts = 2.5;   ///< of one busy core
  double dram_watts = 0;     ///< per busy core
  double memory_bytes = 0;   ///< in use
  double memory_limit = 0;   ///< reserved
  double phase_seconds = 0;  ///< of kPhased, and of GPUs: length of each phase
  double pace = 1;           ///< its load is that of its class times this
  std::size_t first_gpu = 0;
  std::size_t gpus = 0;  ///< that it holds, one after another
  double gpu_watts = 0;  ///< of each above its idle power, at full load

  double cpu_seconds = 0;   ///< used up to now
  double busy_cpus = 0;     ///< that it used in the last step
  double truth_joules = 0;  ///< at the wall
  /// The fraction of a core's first hardware thread that it keeps busy at a time.
  [[nodiscard]] double load(double time) const;
  /// The part of the time in which its GPUs work.
  [[nodiscard]] double gpu_load(double time) const;
  /// Hardware threads that it keeps busy on each of its cores.
  [[nodiscard]] double threads_busy(const Hardware& hardware) const;
};

/// The CPUs of the cores that are reserved for the job, ascending.
std::vector<int> cpus_of(const Job& job, const Hardware& hardware);
/// Where these CPUs are.
host::CpuTopology topology_of(const Hardware& hardware);

/// A plan of jobs that never take a core twice. `occupied` is the fraction of cores to reserve, as
/// far as the arrivals allow. `pause` is the average time between arrivals, in seconds. `small`:
/// jobs run for one to five minutes, on up to an eighth of the cores.
std::vector<Job> random_jobs(const Hardware& hardware,
                             double seconds,
                             double occupied,
                             std::mt19937_64& random,
                             const Weights& weights = kMixedJobs,
                             double pause = 6,
                             bool small = false);

/// Power now, in watts.
struct Power {
  std::vector<double> busy_cores;  ///< by socket
  std::vector<double> package;
  std::vector<double> dram;
  std::vector<double> gpu;  ///< by GPU
  double wall = 0;
};

class Node {
 public:
  Node(const Hardware& hardware, std::vector<Job> jobs);

  /// Moves on by `step` seconds (a part of a second) and charges each job with what is its due:
  ///
  ///   idle wall power x its part of the node's cores + its marginal power x a
  ///
  /// where the marginal power is what the wall would draw less without the job, and `a` is the same
  /// for all, so that all charges, including the system's and free cores', sum to the wall.
  /// The power of GPUs goes to those that hold them.
  void advance(double step);

  [[nodiscard]] double time() const { return time_; }
  [[nodiscard]] const Hardware& hardware() const { return hardware_; }
  [[nodiscard]] const std::vector<Job>& jobs() const { return jobs_; }
  [[nodiscard]] const Power& power() const { return power_; }
  [[nodiscard]] double idle_wall() const { return idle_wall_; }
  /// CPU-seconds since the start: of jobs and of the operating system.
  [[nodiscard]] double busy_seconds() const { return busy_seconds_; }
  /// The same of each logical CPU, in ticks, as /proc/stat had it `back` seconds ago, within the
  /// last step. The second threads of all cores follow the first ones.
  [[nodiscard]] std::vector<host::BusyCpu> busy_cpus(double back) const;
  [[nodiscard]] double memory_used() const { return memory_used_; }
  [[nodiscard]] double package_joules(std::size_t socket) const { return package_joules_[socket]; }
  [[nodiscard]] double dram_joules(std::size_t socket) const { return dram_joules_[socket]; }
  [[nodiscard]] double gpu_joules(std::size_t gpu) const { return gpu_joules_[gpu]; }
  /// The part of the time in which a GPU works now.
  [[nodiscard]] double gpu_load(std::size_t gpu) const;
  [[nodiscard]] double wall_joules() const { return wall_joules_; }

 private:
  struct SocketLoad {
    double core_watts = 0;  ///< of busy cores, before turbo
    double busy_cores = 0;
    double dram_watts = 0;
  };
  [[nodiscard]] SocketLoad load_of(const Job& job) const;
  void add_busy(const Job& job, double back, std::vector<double>& seconds) const;
  [[nodiscard]] double package_watts(const SocketLoad& load) const;
  [[nodiscard]] double wall_watts(const std::vector<SocketLoad>& loads, double gpu_watts) const;

  Hardware hardware_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> running_;  // positions in jobs_
  std::size_t next_ = 0;
  double time_ = 0;
  Power power_;
  double idle_wall_ = 0;
  double busy_seconds_ = 0;
  std::vector<double> busy_of_ended_;  // by CPU
  double memory_used_ = 0;
  std::vector<double> package_joules_;
  std::vector<double> dram_joules_;
  std::vector<double> gpu_joules_;
  double wall_joules_ = 0;
};

}  // namespace ceems::bench::energy
