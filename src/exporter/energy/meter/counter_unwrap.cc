#include "exporter/energy/meter/counter_unwrap.h"

#include <chrono>

namespace ceems::exporter::energy {

double CounterUnwrap::advance(std::uint64_t raw_uj, Clock::SteadyTime now) {
  const bool first = !last_uj_ || (missed_ && now - last_time_ > kMaxGap);
  const std::uint64_t last = last_uj_.value_or(0);
  const double seconds = std::chrono::duration<double>(now - last_time_).count();
  last_uj_ = raw_uj;
  last_time_ = now;
  missed_ = false;
  if (first) {
    return 0;
  }
  if (raw_uj >= last) {
    const double joules = static_cast<double>(raw_uj - last) * 1e-6;
    return joules <= kMaxJumpWatts * seconds ? joules : 0;
  }
  if (range_uj_ <= last) {
    return 0;  // above its own maximum: it does not wrap there
  }
  const double joules = static_cast<double>(range_uj_ - last + raw_uj) * 1e-6;
  return joules <= kMaxWatts * seconds ? joules : 0;
}

}  // namespace ceems::exporter::energy
