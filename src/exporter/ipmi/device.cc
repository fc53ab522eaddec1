#include "exporter/ipmi/device.h"

namespace ceems::exporter::ipmi {

Result<> Device::open() {
  if (port_) {
    return {};
  }
  CEEMS_TRY(port, open_());
  port_ = std::move(port);
  conversation_ = std::make_unique<Conversation>(*port_);
  return {};
}

Result<Bytes> Device::ask(const Request& request, const std::stop_token& stop) {
  CEEMS_TRY(open());
  auto answer = conversation_->ask(request, timeout_, stop);
  // After a timeout the descriptor stays open. The late answer is recognized by its id.
  if (!answer && answer.error().code != ErrorCode::kTimeout) {
    conversation_.reset();
    port_.reset();
  }
  return answer;
}

}  // namespace ceems::exporter::ipmi
