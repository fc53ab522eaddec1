#pragma once

#include <optional>

namespace ceems::exporter::energy {

/// Learns how much power a domain takes when it does nothing: the lower envelope of its power.
///
/// Power is averaged over windows of kWindow seconds. Windows in which the CPUs were nearly idle
/// (utilisation <= kQuiet) show the idle power directly; the estimate then follows the lower
/// kPercentile of them with steps of kStep of its value, so it forgets old levels in hours and a
/// single broken reading moves it by one step. Until such a window was seen, the estimate is the
/// lowest value of power * r(utilisation), r falling from 1 on an idle node to full_load_idle on a
/// full one: conservative, i.e. rather too high, so that energy is first split by what is reserved.
///
/// Not thread-safe.
class IdlePower {
 public:
  static constexpr double kWindow = 10;
  static constexpr double kQuiet = 0.10;
  static constexpr double kPercentile = 0.10;
  static constexpr double kStep = 0.02;
  static constexpr double kFullLoadIdle = 0.5;

  /// `full_load_idle`: part of the power at full load that is taken to be idle power, as long as
  /// nothing better is known.
  explicit IdlePower(double full_load_idle = kFullLoadIdle) : full_load_idle_(full_load_idle) {}

  /// A fixed value in watts; nothing is learned then.
  void configure(double watts) { configured_ = watts; }

  /// One interval: joules in `seconds` at `utilisation` (0...1 of the CPUs; NaN: unknown, taken as
  /// quiet).
  void observe(double joules, double seconds, double utilisation);

  /// Watts now; nothing before the first interval.
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
