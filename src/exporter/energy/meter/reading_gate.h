#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/cpu_use.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/energy/meter/source_gate.h"
#include "host/paths.h"

namespace ceems::exporter::energy {

/// The power of the node by its model and its devices, before anything is measured.
struct NodeLimits {
  double idle_watts = 0;    ///< of the power model; 0: no model
  double full_watts = 0;    ///< the same with all CPUs busy
  double accelerators = 0;  ///< on the PCI bus, which the model leaves out
};

/// The limits of this host: the model among `meters` and the PCI devices that are accelerators
/// (classes "processing accelerator", "3D controller" and "other display controller"; a VGA
/// controller is usually that of the BMC).
NodeLimits node_limits(const Meters& meters, const host::Paths& paths);

/// The most that a node can draw, in watts: four times the model's full load, and for each
/// accelerator what the largest ones draw with their part of fans and losses.
double most_node_watts(const NodeLimits& limits);

/// One interval, at its end.
struct GateSample {
  Clock::SteadyTime time{};
  std::chrono::nanoseconds suspended{};        ///< as in MeterContext
  std::optional<double> utilisation = {};      ///< as in MeterContext
  std::span<const SocketUse> sockets;          ///< as in NodeUse
  double device_joules = 0;                    ///< of GPUs
  std::size_t devices = 0;                     ///< how many have a value
  std::span<std::optional<Reading>> readings;  ///< by source; changed by judge()
};

/// Every reading of a meter passes here before it counts. It has to be
///
/// - plausible: source_gate.h, before a power is integrated;
/// - alive: a counter that stands still for kStill while the node works is frozen, because hardware
///   counters move on idle nodes, too. A power is frozen if the load changed meanwhile
///   (source_gate.h);
/// - consistent: counters of one socket whose steps are equal again and again are one counter and
///   count once (dies that mirror each other), and so are others if their values are equal, too.
///   The node is not below its parts.
///
/// What fails is removed from the readings. Where it can be estimated, a reading with
/// Method::kDerived takes its place, whose `fresh` stays that of the last value that was believed:
///
/// - a package or memory by its own line through load and power, from before; else by the lines of
///   the others of its kind; a package that once worked also by the model;
/// - the node by its line through the power of its parts (or that of the model), if no other source
///   of the node is left. Forgotten when the parts change, as when GPUs appear.
///
/// A counter that shows nothing in a short interval is filled by its own line, and what it shows
/// later is less by that. One step that is far above its line has to be confirmed by the next.
///
/// A source without any of them counts nothing. The rest of the readings get Reading::method as
/// they are.
///
/// judge() allocates nothing. It is called by one thread at a time; sources() is safe for
/// concurrent use with it.
class ReadingGate {
 public:
  static constexpr double kStill = 5;
  /// For a counter whose own time stamp stands still, too: it may still catch up.
  static constexpr double kStillLate = 30;
  /// How long a frozen counter has to move until it is believed.
  static constexpr double kAlive = 10;
  /// How long the last power that was believed holds, where an estimate could take its place.
  static constexpr double kHold = 15;
  /// How long a source may be unreadable until it is estimated. Shorter gaps are filled by its
  /// counter (CounterUnwrap::kMaxGap).
  static constexpr double kGap = 30;
  /// In a longer interval, in seconds, nothing is estimated, because its energy would be charged to
  /// the units that run at its end.
  static constexpr double kMaxInterval = 120;
  /// Equal steps that make two counters of one socket one.
  static constexpr int kEqualSteps = 5;
  /// Counters of different or unknown sockets must also show the same value for so long.
  static constexpr double kEqualSeconds = 40;

  /// `meters` in the order of GateSample::readings. They must outlive the gate.
  ReadingGate(const Meters& meters, const NodeLimits& limits);

  void judge(const GateSample& sample);
  /// For MeterContext::gate.
  [[nodiscard]] SourceGate& gate(std::size_t source) { return sources_[source].gate; }

  /// What is excluded, by source in the order of the meters.
  [[nodiscard]] const SourceGate& source(std::size_t source) const { return sources_[source].gate; }

 private:
  struct Source {
    explicit Source(const SourceInfo& source) : info(&source), gate(source.name) {}
    const SourceInfo* info;
    SourceGate gate;
    PowerLine line;
    std::optional<double> load;              // of this interval, on the axis of `line`
    double mean_load = 0;                    // of a source of the node; of a part: modelled watts
    std::optional<Clock::SteadyTime> fresh;  // of the last value that was believed
    bool moved = false;                      // has shown energy
    bool trusted = false;                    // in this interval
    bool twin = false;                       // it is the counter of another source ...
    bool apart = false;                      // ... that is for another socket
    bool elsewhere = false;                  // as in Reading
    bool frozen = false;
    bool below = false;  // a counter of the node that is below its parts
    bool lost = false;   // without a value for longer than a gap
    int reads = 0;
    int still_reads = 0;
    double still = 0;      // seconds without a step
    double moving = 0;     // seconds in a row with steps
    double absent = 0;     // seconds without a value
    bool counts = false;   // is a counter
    bool jumped = false;   // by the last reading, which was not confirmed yet
    double advanced = 0;   // joules of its line that the counter is yet to show
    double unlearned = 0;  // seconds since it last moved
    double watts = 0;      // mean
    double below_seconds = 0;
  };
  /// Two counters of one domain.
  struct Pair {
    std::size_t first = 0;
    std::size_t second = 0;
    int equal = 0;       // steps
    double seconds = 0;  // of these
    int different = 0;   // in a row
    bool one = false;    // they are the same counter
  };
  struct Interval;

  [[nodiscard]] std::optional<double> load_of(const Source& source, const GateSample& sample) const;
  void judge_parts(const GateSample& sample, const Interval& interval);
  void judge_node(const GateSample& sample, const Interval& interval);
  void note_parts(const GateSample& sample, const Interval& interval);
  static void take(Source& source, std::optional<Reading>& reading, const Interval& interval);
  static bool lives(Source& source, const Reading& reading, const Interval& interval);
  static bool holds_parts(Source& source, double joules, double parts, const Interval& interval);
  void compare(Pair& pair, std::span<std::optional<Reading>> readings, const Interval& interval);
  [[nodiscard]] std::optional<double> estimate(const Source& source) const;
  [[nodiscard]] double by_line(const Source& source, double load) const;
  [[nodiscard]] double assumed_watts(const Source& source) const;
  void settle(Source& source, std::optional<Reading>& reading, const Interval& interval) const;
  static void learn(Source& source, double joules, const Interval& interval);
  [[nodiscard]] double slope_of(Domain domain) const;
  void expect();

  NodeLimits limits_;
  std::deque<Source> sources_;  // never moves them
  std::vector<Pair> pairs_;
  double packages_ = 0;  // number of sources of kPackage
  std::optional<Clock::SteadyTime> started_;
  std::optional<Clock::SteadyTime> last_;
  std::chrono::nanoseconds suspended_{};
  // Power of packages, memory and GPUs: of this interval, and means of some seconds and minutes.
  double parts_now_ = 0;
  double parts_mean_ = 0;
  double parts_slow_ = 0;
  double devices_mean_ = 0;
  double devices_most_ = 0;
  std::size_t parts_ = 0;  // how many of them there are; the lines of the node are for these
  std::size_t devices_ = 0;
  double model_now_ = 0;  // the model's power, and its mean
  double model_mean_ = 0;
};

}  // namespace ceems::exporter::energy
