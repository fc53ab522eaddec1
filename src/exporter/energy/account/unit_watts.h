#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "exporter/energy/account/idle_power.h"
#include "exporter/energy/account/window.h"

namespace ceems::exporter::energy {

/// Learns how many watts each unit draws per busy core, because a core-second of one program may
/// take twice the energy of another program's, and how much a socket's packages or memory draw with
/// nothing running. Only the power and the number of cores that each unit keeps busy are observed.
/// When units start, stop or change their pace, the power changes with them, and this tells what is
/// whose, and what remains with everything taken away, even if the node is never idle. (A line
/// through pairs of use and power, as in IdlePower, is off where the units that run at high use
/// draw more or less per core than those at low use.)
///
/// A Kalman filter (R. E. Kalman, "A New Approach to Linear Filtering and Prediction Problems",
/// 1960) with the state: idle power; watts per busy core on average, of the system, and of each
/// unit; watts that the first busy core wakes; and how much more a core draws alone than with all
/// others busy. A new unit has the average watts, with a wide deviation, until something changes.
/// The system counts as one unit, together with all units beyond the first kMaxUnits. The estimate
/// of idle power comes with its standard deviation, which stays large while nothing changes.
///
/// How much of the power nothing explains differs between nodes: programs may be unsteady, counters
/// late. The filter learns it from its own errors (R. K. Mehra, "On the identification of variances
/// and adaptive Kalman filtering", IEEE Transactions on Automatic Control 15, 1970), so that on a
/// steady node a few watts show what a small unit draws.
///
/// Power and use are averaged over windows of at least kWindow seconds (window.h), and over up to
/// kSteady seconds where nothing changes: windows that are alike say the same thing once, and what
/// their small differences say of watts per core is mostly when counters were read (W. A. Fuller,
/// "Measurement Error Models", 1987: a slope through such points is too flat, and too sure). Each
/// of these takes time in proportion to the square of the number of units, each observe() in
/// proportion to their number. Allocates only when units come or go. Not thread-safe.
///
/// Units: joules, seconds, watts, watts per busy core. Sources: as above, and Assumptions.
class UnitWatts {
 public:
  /// Seconds over which power and use are averaged.
  static constexpr double kWindow = 2;
  /// The same where nothing changes.
  static constexpr double kSteady = 60;
  static constexpr std::size_t kMaxUnits = 256;
  /// Bounds of the value learned for a unit, as fractions of the average.
  static constexpr double kMinWatts = 0.2;
  static constexpr double kMaxWatts = 4;
  /// What the first busy core of a socket is assumed to wake.
  static constexpr double kWakeWatts = 6.5;

  struct Use {
    std::uint64_t key = 0;  ///< of the unit; never 0 and never reused
    double cores = 0;       ///< busy cores, >= 0
    /// The same weighted with the part of its socket's cores that rests; less than 0: all sockets
    /// are as busy as the interval says.
    double beside_resting = -1;
    /// Values learned by another object, read when a unit is first seen. May be null.
    const PowerEstimate* before = nullptr;
  };
  /// The learned values other than the units'.
  struct State {
    std::optional<PowerEstimate> idle = {};
    std::optional<PowerEstimate> core = {};    ///< watts per busy core on average
    std::optional<PowerEstimate> system = {};  ///< watts per busy core of the system
    std::optional<PowerEstimate> losses = {};  ///< see losses()
    bool operator==(const State&) const = default;
  };
  /// One interval: energy, the cores that can be busy, and those that were: what units did not use
  /// of them is the system's.
  struct Interval {
    double joules = 0;
    double seconds = 0;
    double cores_max = 0;
    double cores = 0;
    Timing timing = {};
    /// Part of the sockets that had a busy core; less than 0: all, as soon as a whole core is busy.
    double awake = -1;
    /// As in Use, of everything.
    double beside_resting = -1;
    /// What known domains draw, which are not part of `joules`, but whose losses are.
    double known_joules = 0;
  };

  /// An assumed value and its standard deviation.
  struct Assumptions {
    /// Idle power as a fraction of that at full load.
    double full_load_idle = IdlePower::kFullLoadIdle;
    /// By how much a busy core draws more while the others rest.
    double turbo = 0;
    double turbo_deviation = 0;
    /// Watts that the first busy core wakes. It may be off by as much.
    double wake_watts = 0;
    /// Fans and losses of the supply for each watt of the known domains, and their deviation.
    double losses = 0;
    double losses_deviation = 0;
    /// Deviation of a unit's watts from the average, as a fraction of it.
    double spread = 0.4;
    /// Seconds over which power and use are averaged. Longer where the use of each second is rough.
    double window = kWindow;
    /// By what part of it the estimate of the noise moves with each window.
    double noise_step = 0.01;
    /// Units of which little is known share by use what they draw together.
    bool doubts = false;
  };
  /// With counters, whose windows are short: one that falls faster trusts what small units seem to
  /// draw too early, and other accounts of the same node then see other watts (bench/RESULTS.md).
  static constexpr double kNoiseStep = 0.004;

  /// Clocks fall as more cores work, and the first core wakes what all share. In the levels of
  /// data/power-models/cpus.csv the latter is 3 to 44 W a socket (at zero load on the line through
  /// 10 and 20 %, less idle), which hardly depends on the idle power (correlation 0.1 over 15
  /// servers). These have idle states that servers in use rarely reach, so less is assumed: 8 % of
  /// the 65 and 100 W that packages in use were seen to draw (docs/energy.md).
  static Assumptions packages(double full_load_idle, double sockets = 1) {
    return {.full_load_idle = full_load_idle,
            .turbo = 0.15,
            .turbo_deviation = 0.25,
            .wake_watts = kWakeWatts * sockets,
            .spread = 0.4,
            .noise_step = kNoiseStep,
            .doubts = true};
  }
  /// The same at the wall, where fans and the losses of the supply add a tenth.
  static Assumptions wall(double full_load_idle, double sockets = 1) {
    constexpr double kAtWall = 1.1;
    Assumptions assumptions = packages(full_load_idle, kAtWall * sockets);
    assumptions.losses = kAtWall - 1;
    assumptions.losses_deviation = 0.06;
    assumptions.noise_step = Assumptions().noise_step;
    assumptions.doubts = false;
    return assumptions;
  }
  /// Most units hardly use memory's bandwidth, and a few use most of it.
  static Assumptions memory(double full_load_idle) {
    return {
        .full_load_idle = full_load_idle, .spread = 2, .noise_step = kNoiseStep, .doubts = true};
  }

  explicit UnitWatts(const Assumptions& assumptions)
      : assumed_(assumptions), window_(assumptions.window), steady_length_(assumptions.window) {}

  /// Continues with values learned by another object. Does nothing once a window was full.
  /// Implausible values are left out.
  void restore(const State& state);

  /// Sets the idle power to a fixed value in watts, which is not learned then.
  void fix_idle(double watts) { fixed_idle_ = watts; }

  /// The idle power is `watts` more from now on (less than 0: less).
  void move_idle(double watts);

  /// Takes one interval with all units that may use something. Units that are missing are
  /// forgotten.
  void observe(const Interval& interval, std::span<const Use> units);

  /// Learns from an interval of some length that is over, with the average use of that time, where
  /// a wall meter shows power late: `elapsed` seconds after the end of the interval before. Parts
  /// of that time may not have been observed. divide() then uses the running units' watts.
  void learn(const Interval& interval, std::span<const Use> units, double elapsed);
  /// Computes watts() and total_watts() of the units that keep `cores` busy with all others.
  void divide(double cores, std::span<const Use> units);

  /// Before the first window is full, the restored value, if any.
  [[nodiscard]] std::optional<PowerEstimate> idle() const { return state().idle; }
  [[nodiscard]] State state() const;
  /// Watts that fans and the supply draw for each watt of the known domains: 0.1 at a supply of
  /// 94 % with fans of 4 %.
  [[nodiscard]] double losses() const;
  /// Watts per busy core of a unit. Nothing if it has not been in a full window yet or has none of
  /// its own.
  [[nodiscard]] std::optional<PowerEstimate> of_unit(std::uint64_t key) const;
  /// The unexplained variance of power, as a multiple of the usual one.
  [[nodiscard]] double noise() const { return noise_; }
  /// Watts of each unit of the last observe() or divide(), in its order; >= 0. Before the first
  /// window is full, they follow from restored values, or are the busy cores.
  [[nodiscard]] std::span<const double> watts() const { return drawn_; }
  /// Watts of everything in the last observe(); at least the sum of watts().
  [[nodiscard]] double total_watts() const { return total_watts_; }

 private:
  // Places in the state. The units follow.
  static constexpr std::size_t kIdle = 0;
  static constexpr std::size_t kAverage = 1;
  static constexpr std::size_t kWake = 2;
  static constexpr std::size_t kTurbo = 3;
  static constexpr std::size_t kLosses = 4;
  static constexpr std::size_t kSystem = 5;
  static constexpr std::size_t kFixed = 6;
  static constexpr std::size_t kNone = std::size_t(-1);

  struct Share {
    double core_seconds = 0;
    double beside_resting = 0;  ///< core-seconds weighted with the part of the cores that rests
    void add(const Share& other);
  };
  /// What was seen in some time.
  struct Sums {
    double windows = 0;
    double seconds = 0;
    double elapsed = 0;  ///< seconds since the end of the time before it
    double joules = 0;
    double known_joules = 0;
    double awake_seconds = 0;
    Share all = {};
    Share system = {};  ///< of a full window
    void add(const Sums& other);
  };
  struct Unit {
    Share window = {};  ///< of the window that is being filled
    Share steady = {};  ///< of the windows before it that were alike
    double cores = 0;   ///< in the window before
    bool alive = false;
    std::size_t place = kNone;  ///< in the state
    bool beyond = false;        ///< there was no place for it
    double assumed = 0;         ///< variance of what sets it apart, when it got its place
    double trust = 0;           ///< how far its own watts count, 0...1
    std::optional<PowerEstimate> before = {};
  };

  void close_window(double seconds, double elapsed);
  void share_window();
  void forget_steady();
  [[nodiscard]] bool like_before();
  void restart_window();
  void begin(double watts, double cores);
  void adopt_units();
  void drift(double seconds);
  void learn_from(const Sums& seen, Share Unit::* share);
  [[nodiscard]] double expect(const Sums& seen, Share Unit::* share);
  void correct(double watts, const Sums& seen, Share Unit::* share);
  void bound(std::size_t place, double to);
  [[nodiscard]] static double within_bounds(std::size_t place, double value);
  void learn_noise(double seen, double windows);
  [[nodiscard]] double& covariance(std::size_t row, std::size_t column) {
    return covariance_[row * mean_.size() + column];
  }
  [[nodiscard]] PowerEstimate estimate(std::size_t place) const;
  void note_trust();
  /// The average watts of a core, but at least a little.
  [[nodiscard]] double core_watts() const;
  void take(const Interval& interval, std::span<const Use> units);

  Assumptions assumed_;
  State restored_;
  std::optional<double> fixed_idle_;
  std::vector<double> mean_;        // the state; empty before the first window
  std::vector<double> covariance_;  // square, by rows
  std::map<std::uint64_t, Unit> units_;
  double cores_max_ = 1;

  Window window_;
  Sums sums_;             // of the window that is being filled
  double steady_length_;  // how long they are until something is learned from them
  Sums steady_;           // of the windows before it that were alike
  // Of the window before.
  std::optional<double> last_watts_;
  double last_system_cores_ = 0;
  double last_known_watts_ = 0;
  double noise_ = 1;  // variance of power that nothing explains, / the usual one

  // Of one window.
  std::vector<double> slope_;  // of power by each part of the state
  std::vector<double> gain_;

  // Of one interval.
  std::vector<double> drawn_;
  std::vector<double> trusts_;
  double total_watts_ = 0;
};

}  // namespace ceems::exporter::energy
