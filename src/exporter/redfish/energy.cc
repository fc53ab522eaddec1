#include "exporter/redfish/energy.h"

#include <chrono>

namespace ceems::exporter::redfish {

double EnergyScale::correct(double watts,
                            const std::optional<EnergyCounter>& counter,
                            Clock::SteadyTime now) {
  const double passed = last_ ? std::chrono::duration<double>(now - *last_).count() : 0;
  if (passed > kMaxGap) {
    begin_.reset();
  }
  seconds_ += passed;
  joules_ += watts_ * passed;
  watts_ = watts;
  last_ = now;
  if (counter) {
    compare(*counter);
  }
  return watts * factor_;
}

void EnergyScale::compare(const EnergyCounter& counter) {
  const double counted = counter.joules - begin_.value_or(counter.joules);
  const bool moved = begin_ && counted >= kMinSteps * counter.step;
  if (moved && seconds_ < kMinSeconds) {
    return;
  }
  if (moved && joules_ > 0) {
    const double factor = counted / joules_;
    factor_ = factor <= kMaxFactor && factor * kMaxFactor >= 1 ? factor : 1;
  } else if (begin_ && counted >= 0 && seconds_ < kMaxSeconds) {
    return;
  } else if (begin_ && counted >= 0) {
    factor_ = 1;
  }
  begin_ = counter.joules;
  seconds_ = 0;
  joules_ = 0;
}

}  // namespace ceems::exporter::redfish
