// The rules that divide a node's energy among its jobs, fed with what meters and kernel show.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "energy/node.h"
#include "energy/wall_meter.h"
#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/unit/unit.h"

namespace ceems::bench::energy {

/// Joules by the number of the job.
using Charges = std::map<std::size_t, double>;

/// How far the exporter is from reading everything at one moment. It reads the clock, the units,
/// the clock, /proc/stat, the clock, and the meters, with a pause before each, which is
/// exponential, as is the time by which a sample begins late.
struct Sampling {
  double late = 0;           ///< mean, in seconds
  double pause = 0;          ///< mean, in seconds
  double stall = 0;          ///< probability that others hold it up in a pause
  double stall_seconds = 0;  ///< mean time for which they do, which is limited to 2 s
  /// Seconds between two updates of the CPU time of a running thread in its cgroup, and between two
  /// updates of the counters of energy.
  double cpu_update = 0;
  double energy_update = 0;
};
/// All at once.
inline constexpr Sampling kExact;
/// As on a node whose jobs leave the operating system some time: a kernel of 250 Hz, and RAPL.
inline constexpr Sampling kUsual{.late = 0.002,
                                 .pause = 0.0005,
                                 .stall = 0.005,
                                 .stall_seconds = 0.02,
                                 .cpu_update = 0.004,
                                 .energy_update = 0.001};
/// As on an overloaded node.
inline constexpr Sampling kLoaded{.late = 0.02,
                                  .pause = 0.005,
                                  .stall = 0.1,
                                  .stall_seconds = 0.4,
                                  .cpu_update = 0.01,
                                  .energy_update = 0.001};

/// A time in which GPUs do not answer, in seconds since the start of the exporter.
struct GpuGap {
  double from = 0;
  double until = 0;
  std::size_t first = 0;
  std::size_t count = 1000;  ///< of GPUs, from the first
};

/// What the exporter sees of a node, and what happens to it.
struct View {
  Sampling sampling = kUsual;
  std::uint64_t seed = 1;  ///< of the moments at which it reads
  bool events = false;     ///< it gets events of new and ended units, and reads a unit when it ends
  bool reservations = true;  ///< it knows what units have reserved
  /// Seconds from its start until it is started again.
  std::optional<double> restart_after = {};
  bool stored = false;                    ///< it then continues with what it had learned
  std::optional<double> jump_after = {};  ///< until the counters of the packages jump
  double jump_joules = 0;
  double dram_from = 0;  ///< seconds from its start until memory has a meter
  std::vector<GpuGap> gpu_gaps = {};
};

/// The accounting of the exporter, with a sampler that ticks every second and looks at young units
/// five times a second. Counters of RAPL have 32 bits of 61 µJ.
class OurRule {
 public:
  OurRule(const Node& node, const MeterSet& meters, const View& view);
  /// Call it every 0.05 s.
  void advance(const Node& node, const WallMeter& wall);
  /// Reads the counters once more. Call it at the end.
  void collect();
  [[nodiscard]] const Charges& charges() const { return charges_; }
  /// Of the whole node if there is a meter for it, else of packages and memory; 0 if not known.
  [[nodiscard]] double idle_watts() const;
  [[nodiscard]] const exporter::energy::Account& account() const { return *account_; }
  /// What the meters saw: the energy that was divided.
  [[nodiscard]] double joules() const;

 private:
  struct Seen {
    double cpu_seconds = 0;
    double last_seen = 0;
    std::shared_ptr<const std::vector<int>> cpus;
  };
  /// A sample that is being taken: when its parts are read, and the values read so far.
  struct Parts {
    double units_read = 0;
    double stat_clock = 0;
    double stat_read = 0;
    double meters_clock = 0;
    double meters_read = 0;
    double meters_after = 0;
    std::optional<exporter::UnitSnapshot> units;
    bool stat = false;
  };
  void start(const Node& node);
  [[nodiscard]] double pause();
  [[nodiscard]] Parts plan(double time);
  void proceed(const Node& node);
  void see_units(const Node& node);
  void see(const Node& node, const Job& job, double back);
  [[nodiscard]] exporter::UnitSnapshot snapshot(const Node& node, double time);
  void read_gpus(const Node& node);
  [[nodiscard]] std::vector<exporter::energy::DeviceSample> devices(const Node& node, double time);
  void read_stat(const Node& node, const Parts& parts, double back);
  void read_meters(const Node& node, const Parts& parts, double back);

  MeterSet meters_;
  View view_;
  double begin_;
  std::unique_ptr<exporter::energy::Account> account_;
  exporter::energy::CpuUseMeter cpu_use_;
  exporter::energy::HeldPower held_;
  std::vector<exporter::energy::CounterUnwrap> counters_;
  std::map<std::size_t, Seen> units_;
  std::size_t first_ = 0;  // jobs before it have ended and been reported
  double next_tick_;
  std::optional<Parts> sample_;
  std::mt19937_64 random_;
  std::mt19937_64 gpu_random_{2};
  std::optional<double> busy_cpus_;
  double next_young_;
  double next_scrape_;
  double next_poll_;
  /// The last reading of the library, and of the one before what was already accounted for.
  struct GpuReading {
    double taken = 0;
    std::vector<std::optional<double>> joules;
    std::vector<double> load;
  };
  GpuReading gpus_;
  double next_gpus_;
  std::vector<std::optional<std::pair<double, double>>> gpus_before_;  // joules and time
  // Of the accounts before a restart.
  Charges charges_before_;
  double joules_before_ = 0;
  Charges charges_;
};

/// The recording rules of CEEMS 0.10.2 with a scrape every 15 s and a PUE of 1: packages by CPU
/// time, memory by memory in use, and with a meter of the whole node a tenth of it by the number of
/// units.
class ReferenceRule {
 public:
  ReferenceRule(const Node& node, const MeterSet& meters)
      : meters_(meters), next_scrape_(node.time()) {}
  void advance(const Node& node, const WallMeter& wall);
  [[nodiscard]] const Charges& charges() const { return charges_; }

 private:
  struct Last {
    double busy_seconds = 0;
    double package_joules = 0;
    double dram_joules = 0;
    std::map<std::size_t, double> cpu_seconds;
  };
  MeterSet meters_;
  std::optional<Last> last_;
  double next_scrape_;
  Charges charges_;
};

/// The rule of Kepler before 0.10, every 3 s: energy above the lowest power seen (of packages,
/// memory and the rest each) by CPU time, and that below it in equal parts.
class KeplerRule {
 public:
  KeplerRule(const Node& node, const MeterSet& meters) : meters_(meters), next_(node.time()) {}
  void advance(const Node& node, const WallMeter& wall);
  [[nodiscard]] const Charges& charges() const { return charges_; }

 private:
  static constexpr std::size_t kParts = 3;
  struct Last {
    double busy_seconds = 0;
    std::array<double, kParts> joules{};
    std::map<std::size_t, double> cpu_seconds;
  };
  MeterSet meters_;
  std::optional<Last> last_;
  std::array<std::optional<double>, kParts> idle_watts_;
  double wall_joules_ = 0;  // the integral of what the meter shows
  double next_;
  Charges charges_;
};

}  // namespace ceems::bench::energy
