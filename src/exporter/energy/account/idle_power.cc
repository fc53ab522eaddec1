#include "exporter/energy/account/idle_power.h"

#include <algorithm>
#include <cmath>

namespace ceems::exporter::energy {

double IdlePower::idle_part(double busy) const {
  return full_load_idle_ / (full_load_idle_ + (1 - full_load_idle_) * busy);
}

void IdlePower::observe(double joules, double seconds, double utilisation) {
  if (configured_ || !(joules > 0) || !(seconds > 0)) {
    return;  // the meter did not move, which shows nothing about the power
  }
  const double busy = std::isnan(utilisation) ? 0 : std::clamp(utilisation, 0.0, 1.0);
  if (!inferred_) {  // the first interval serves until the first window is full
    inferred_ = joules / seconds * idle_part(busy);
  }
  joules_ += joules;
  seconds_ += seconds;
  busy_seconds_ += busy * seconds;
  if (seconds_ >= kWindow) {
    close_window();
  }
}

void IdlePower::close_window() {
  const double power = joules_ / seconds_;
  const double busy = busy_seconds_ / seconds_;
  joules_ = 0;
  seconds_ = 0;
  busy_seconds_ = 0;
  if (busy > kQuiet) {
    const double scaled = power * idle_part(busy);
    inferred_ = std::min(inferred_.value_or(scaled), scaled);
    return;
  }
  if (!quiet_) {
    quiet_ = power;
    return;
  }
  // Stochastic approximation of a quantile. In equilibrium the fraction kPercentile of the windows
  // lies below the estimate, because steps down are larger by the same proportion.
  const double step = kStep * *quiet_;
  if (power < *quiet_) {
    quiet_ = std::max(power, *quiet_ - step * (1 - kPercentile));
  } else {
    quiet_ = std::min(power, *quiet_ + step * kPercentile);
  }
}

std::optional<double> IdlePower::watts() const {
  if (configured_) {
    return configured_;
  }
  return quiet_ ? quiet_ : inferred_;
}

}  // namespace ceems::exporter::energy
