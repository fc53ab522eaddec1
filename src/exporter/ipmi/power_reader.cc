#include "exporter/ipmi/power_reader.h"

#include <utility>

namespace ceems::exporter::ipmi {

Result<> NativePower::open() {
  if (port_) {
    return {};
  }
  auto port = open_();
  if (!port) {
    return fail(std::move(port).error());
  }
  port_ = *std::move(port);
  conversation_ = std::make_unique<Conversation>(*port_);
  return {};
}

Result<Power> NativePower::read(const std::stop_token& stop) {
  if (auto opened = open(); !opened) {
    return fail(std::move(opened).error());
  }
  auto answer = conversation_->ask(power_reading_request(), timeout_, stop);
  if (!answer) {
    // After a timeout the descriptor stays open. The late answer is recognized by its id.
    if (answer.error().code != ErrorCode::kTimeout) {
      conversation_.reset();
      port_.reset();
    }
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
