// The rules that divide a node's energy among its jobs, fed with what meters and kernel show.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "energy/node.h"
#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/unit/unit.h"

namespace ceems::bench::energy {

/// Which meters a node has.
struct MeterSet {
  std::string_view name;
  bool packages = true;
  bool dram = true;
  /// How often the meter of the whole node has a new value, which is the average of that time; 0:
  /// there is none.
  double wall_period = 0;
  double wall_delay = 0;  ///< seconds from the end of that time until the value is shown
};

/// What the meter of the whole node shows, in whole watts.
class WallMeter {
 public:
  WallMeter(const Node& node, const MeterSet& meters)
      : meters_(meters), begin_(node.time()), joules_(node.wall_joules()) {}
  void advance(const Node& node);
  /// Nothing before its first value.
  [[nodiscard]] std::optional<double> watts() const { return shown_; }

 private:
  MeterSet meters_;
  double begin_;  ///< of the time whose average comes next
  double joules_;
  struct Value {
    double watts = 0;
    double time = 0;
  };
  std::optional<Value> coming_;
  std::optional<double> shown_;
};

/// Joules by the number of the job.
using Charges = std::map<std::size_t, double>;

/// The accounting of the exporter, with a sampler that ticks every second and looks at young units
/// five times a second.
class OurRule {
 public:
  OurRule(const Node& node, const MeterSet& meters);
  /// Call it every 0.05 s.
  void advance(const Node& node, const WallMeter& wall);
  /// Reads the counters once more. Call it at the end.
  void collect();
  [[nodiscard]] const Charges& charges() const { return charges_; }
  /// Of the whole node if there is a meter for it, else of packages and memory; 0 if not known.
  [[nodiscard]] double idle_watts() const;
  /// What the meters saw: the energy that was divided.
  [[nodiscard]] double joules() const;

 private:
  struct Seen {
    double cpu_seconds = 0;
    double last_seen = 0;
    std::shared_ptr<const std::vector<int>> cpus;
  };
  void tick(const Node& node, const WallMeter& wall);
  [[nodiscard]] exporter::UnitSnapshot snapshot(const Node& node);

  MeterSet meters_;
  exporter::energy::Account account_;
  exporter::energy::CpuUseMeter cpu_use_;
  exporter::energy::HeldPower held_;
  std::vector<double> joules_;  // of the counters at the last tick
  std::map<std::size_t, Seen> units_;
  std::size_t first_ = 0;  // jobs before it have ended and been reported
  double next_tick_;
  double next_young_;
  double next_scrape_;
  double next_poll_;
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

}  // namespace ceems::bench::energy
