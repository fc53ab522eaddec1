#include "exporter/ipmi/conversation.h"

#include <utility>

namespace ceems::exporter::ipmi {

Result<Bytes> Conversation::ask(const Request& request,
                                std::chrono::milliseconds timeout,
                                const std::stop_token& stop) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const long id = ++last_id_;
  CEEMS_TRY(port_.send(request, id));
  // Ends at the deadline even if the device never stops sending.
  while (std::chrono::steady_clock::now() < deadline) {
    CEEMS_TRY(message, port_.receive(deadline, stop));
    if (!message.response || message.id != id || message.command != request.command) {
      continue;
    }
    if (message.data.empty()) {
      return fail(ErrorCode::kParse, "expected a completion code, got an empty answer");
    }
    return std::move(message.data);
  }
  return fail(ErrorCode::kTimeout, "no answer within {} ms", timeout.count());
}

}  // namespace ceems::exporter::ipmi
