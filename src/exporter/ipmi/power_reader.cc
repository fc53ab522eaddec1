#include "exporter/ipmi/power_reader.h"

#include <utility>

namespace ceems::exporter::ipmi {

Result<Power> NativePower::read(const std::stop_token& stop) {
  auto answer = device_.ask(power_reading_request(), stop);
  if (!answer) {
    return fail(std::move(answer).error().with_context("DCMI power reading"));
  }
  auto power = decode_power_reading(*answer);
  if (!power) {
    return fail(std::move(power).error().with_context("DCMI power reading"));
  }
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
