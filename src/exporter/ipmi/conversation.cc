#include "exporter/ipmi/conversation.h"

#include <utility>

namespace ceems::exporter::ipmi {

Result<Bytes> Conversation::ask(const Request& request,
                                std::chrono::milliseconds timeout,
                                const std::stop_token& stop) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const long id = ++last_id_;
  if (auto sent = port_.send(request, id); !sent) {
    return fail(std::move(sent).error());
  }
  // Ends at the deadline even if the device never stops sending.
  while (std::chrono::steady_clock::now() < deadline) {
    auto message = port_.receive(deadline, stop);
    if (!message) {
      return fail(std::move(message).error());
    }
    if (!message->response || message->id != id || message->command != request.command) {
      continue;
    }
    if (message->data.empty()) {
      return fail(ErrorCode::kParse, "expected a completion code, got an empty answer");
    }
    return std::move(message->data);
  }
  return fail(ErrorCode::kTimeout, "no answer within {} ms", timeout.count());
}

}  // namespace ceems::exporter::ipmi
