#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "exporter/energy/account/window.h"

namespace ceems::exporter::energy {

/// An idle power and how far it may be off.
struct PowerEstimate {
  /// With a larger deviation, as a fraction of the watts, an estimate is rather assumed than
  /// learned.
  static constexpr double kMaxLearned = 0.2;
  double watts = 0;
  double deviation = 0;  ///< about one standard deviation, in watts
  /// False for what no node can have.
  [[nodiscard]] bool plausible() const;
  [[nodiscard]] bool learned() const { return deviation <= kMaxLearned * watts; }
  bool operator==(const PowerEstimate&) const = default;
};

/// Two estimates of the same power, each weighted by the inverse of its variance; `a` if neither is
/// unsure.
PowerEstimate combine(const PowerEstimate& a, const PowerEstimate& b);

/// Learns how much power a domain draws with nothing running, from pairs of use and power.
///
/// Power and use are averaged over windows of at least kWindow seconds (window.h), and windows of
/// similar use in bins, which are narrower towards zero. The estimate is the intercept of a line
/// through the bins, fitted by least squares with weights that fall with the distance from zero. A
/// node that was seen idle thus has the power that it drew then, and one that never is has the
/// extrapolated one. A bin changes only with windows of its own use, so a steady load teaches
/// nothing about the idle node that was known better.
///
/// While all windows have nearly the same use, nothing can be extrapolated. Then, and the more the
/// closer the bins are, the slope is taken from an assumption: power grows in proportion to use
/// from the idle power to the power at full load, of which it is the fraction `full_load_idle`.
///
/// A bin follows its windows within a quarter of an hour downwards and an hour upwards, each window
/// by kMaxStep of the larger power, so one broken reading does little.
///
/// Units: joules, seconds, watts; use is a fraction. Source: local linear regression (W. S.
/// Cleveland, "Robust locally weighted regression and smoothing scatterplots", Journal of the
/// American Statistical Association 74, 1979) at use 0; kTurbo and the fractions are assumptions.
///
/// Not thread-safe.
class IdlePower {
 public:
  static constexpr double kWindow = 10;
  static constexpr double kMaxStep = 0.02;
  static constexpr double kFullLoadIdle = 0.5;
  static constexpr std::size_t kBins = 16;
  /// By how much a busy core draws more while the others rest, because clocks fall as more cores
  /// work. An assumption: how far they fall depends on the CPU and on what runs.
  static constexpr double kTurbo = 0.2;

  /// The mean of windows of similar use.
  struct Bin {
    double use = 0;      ///< 0...1
    double watts = 0;    ///< > 0
    double windows = 0;  ///< how many it is the mean of, at most; 0: nothing was seen
    /// False for what no node can have shown.
    [[nodiscard]] bool plausible() const;
    bool operator==(const Bin&) const = default;
  };

  /// `full_load_idle` is the fraction of the power at full load that is taken as idle power until a
  /// better estimate is known. `turbo` bends the line: power above idle is taken to be in
  /// proportion to use * (1 + turbo * (1 - use)).
  explicit IdlePower(double full_load_idle = kFullLoadIdle, double turbo = 0)
      : full_load_idle_(full_load_idle), turbo_(turbo) {}
  /// Of a domain that follows the use of CPUs.
  static IdlePower of_cpus(double full_load_idle = kFullLoadIdle) {
    return IdlePower(full_load_idle, kTurbo);
  }

  /// Sets a fixed value in watts. Nothing is learned then.
  void configure(double watts) { configured_ = watts; }

  /// Takes one interval: `joules` in `seconds` at `utilisation` (0...1 of the CPUs; NaN, which
  /// means unknown, counts as idle).
  void observe(double joules, double seconds, double utilisation, const Timing& timing = {});

  /// The estimate in watts; nothing before the first interval.
  [[nodiscard]] std::optional<double> watts() const {
    return configured_ || !estimate_ ? configured_ : std::optional(estimate_->watts);
  }
  /// The same with its deviation: half of what the assumption subtracted. 0 where a value is
  /// configured.
  [[nodiscard]] std::optional<PowerEstimate> estimate() const {
    return configured_ ? std::optional(PowerEstimate{.watts = *configured_}) : estimate_;
  }
  /// The lowest mean of several windows of similar use; nothing before there is one.
  [[nodiscard]] std::optional<double> lowest() const;

  /// The learned points, by rising use. Empty before the first window is full and where a value is
  /// configured.
  [[nodiscard]] std::vector<Bin> state() const;
  /// Continues with the state of another object. Bins with windows stay as they are, and
  /// implausible values are left out.
  void restore(std::span<const Bin> state);
  /// The power is `watts` more at any use from now on (less than 0: less). What was seen counts
  /// less than what will be. Forgets everything where nothing would remain.
  void move(double watts);
  /// Forgets what was seen.
  void forget();

 private:
  static void add(Bin& bin, double use, double watts);
  Bin& bin_of(double use);
  void close_window();
  /// The power at use 1 above the idle power, divided by the latter.
  [[nodiscard]] double assumed_slope() const { return (1 - full_load_idle_) / full_load_idle_; }
  [[nodiscard]] double load(double use) const { return use * (1 + turbo_ * (1 - use)); }
  [[nodiscard]] PowerEstimate fit() const;

  double full_load_idle_;
  double turbo_;
  std::optional<double> configured_;
  std::optional<PowerEstimate> estimate_;
  std::array<Bin, kBins> bins_{};
  // The window that is being filled.
  Window window_{kWindow};
  double joules_ = 0;
  double busy_seconds_ = 0;
};

/// Idle power as a fraction of that at full load, which is assumed while the use has hardly varied.
struct AssumedIdle {
  double packages = IdlePower::kFullLoadIdle;
  double memory = IdlePower::kFullLoadIdle;
  double node = IdlePower::kFullLoadIdle;  ///< and of the rest of the node
};

}  // namespace ceems::exporter::energy
