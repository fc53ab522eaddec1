#pragma once

#include <optional>

namespace ceems::exporter::energy {

/// Learns how much power a domain draws when it is idle: the lower envelope of its power.
///
/// Power is averaged over windows of kWindow seconds. Windows in which the CPUs were nearly idle
/// (utilisation <= kQuiet) show the idle power directly. The estimate then follows their lower
/// kPercentile in steps of kStep of its value, so it forgets old levels in hours, and one broken
/// reading moves it by one step only. Until such a window was seen, the estimate is the lowest
/// value of power * r(utilisation), where r falls from 1 on an idle node to full_load_idle on a
/// fully loaded one. This estimate is rather too high, so energy is first split by reservations.
///
/// Not thread-safe.
class IdlePower {
 public:
  static constexpr double kWindow = 10;
  static constexpr double kQuiet = 0.10;
  static constexpr double kPercentile = 0.10;
  static constexpr double kStep = 0.02;
  static constexpr double kFullLoadIdle = 0.5;

  /// `full_load_idle` is the fraction of the power at full load that is taken as idle power until a
  /// better estimate is known.
  explicit IdlePower(double full_load_idle = kFullLoadIdle) : full_load_idle_(full_load_idle) {}

  /// Sets a fixed value in watts. Nothing is learned then.
  void configure(double watts) { configured_ = watts; }

  /// Takes one interval: `joules` in `seconds` at `utilisation` (0...1 of the CPUs; NaN, which
  /// means unknown, counts as idle).
  void observe(double joules, double seconds, double utilisation);

  /// The estimate in watts; nothing before the first interval.
  [[nodiscard]] std::optional<double> watts() const;

 private:
  void close_window();
  [[nodiscard]] double idle_part(double busy) const;

  double full_load_idle_;
  std::optional<double> configured_;
  std::optional<double> quiet_;     // learned from quiet windows
  std::optional<double> inferred_;  // from any interval, until quiet_ is known
  double joules_ = 0;
  double seconds_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace ceems::exporter::energy
