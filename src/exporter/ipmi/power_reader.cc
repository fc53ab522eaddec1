#include "exporter/ipmi/power_reader.h"

#include <utility>

namespace ceems::exporter::ipmi {

Result<Power> NativePower::read(const std::stop_token& stop) {
  CEEMS_TRY_IN("DCMI power reading", answer, device_.ask(power_reading_request(), stop));
  CEEMS_TRY_IN("DCMI power reading", power, decode_power_reading(answer));
  return power;
}

Result<Power> PowerReader::read(const std::stop_token& stop) {
  if (!command_) {
    return native_->read(stop);
  }
  auto power = command_->read(stop);
  if (power || !native_ || stop.stop_requested()) {
    return power;
  }
  auto by_device = native_->read(stop);
  return by_device ? by_device : power;
}

}  // namespace ceems::exporter::ipmi
