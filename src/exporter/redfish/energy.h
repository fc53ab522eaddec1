#pragma once

#include <optional>

#include "base/clock.h"
#include "exporter/redfish/documents.h"

namespace ceems::exporter::redfish {

/// Scales the power that a BMC samples to its counter of energy, which also has what happened
/// between the samples. The counter gives the energy and the power its course in time: a counter
/// with steps of 0.1 kWh moves every few minutes only.
///
/// The factor is that of the last window of at least kMinSeconds in which the counter made
/// kMinSteps of its smallest steps. It is 1 before the first window, where the counter and the
/// power differ by more than kMaxFactor (a wrong unit, another part of the node), and when the
/// counter made less than that in kMaxSeconds. Not thread-safe.
class EnergyScale {
 public:
  static constexpr double kMinSeconds = 60;
  static constexpr double kMaxSeconds = 3600;
  static constexpr double kMinSteps = 20;
  static constexpr double kMaxFactor = 2;
  /// A power holds no longer than this; after a longer gap the window begins again.
  static constexpr double kMaxGap = 120;

  /// The scaled power. `counter` is what it showed at `now`, if it was read.
  double correct(double watts, const std::optional<EnergyCounter>& counter, Clock::SteadyTime now);
  [[nodiscard]] double factor() const { return factor_; }

 private:
  void compare(const EnergyCounter& counter);

  double factor_ = 1;
  std::optional<double> begin_;  // the counter when the window began
  double seconds_ = 0;           // of the window
  double joules_ = 0;            // of the power in the window
  double watts_ = 0;             // at last_
  std::optional<Clock::SteadyTime> last_;
};

}  // namespace ceems::exporter::redfish
