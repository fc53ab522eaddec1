#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "exporter/ipmi/conversation.h"

namespace ceems::exporter::ipmi {

/// A device for tests. A function returns the messages that a request causes.
class FakePort final : public Port {
 public:
  using Answers = std::function<std::vector<Message>(const Request&, long id)>;

  explicit FakePort(Answers answers) : answers_(std::move(answers)) {}

  Result<> send(const Request& request, long id) override {
    for (Message& message : answers_(request, id)) {
      queue_.push_back(std::move(message));
    }
    return {};
  }
  Result<Message> receive(Deadline /*deadline*/, const std::stop_token& /*stop*/) override {
    if (queue_.empty()) {
      return fail(ErrorCode::kTimeout, "the BMC does not answer in time");
    }
    Message message = std::move(queue_.front());
    queue_.pop_front();
    return message;
  }

 private:
  Answers answers_;
  std::deque<Message> queue_;
};

/// The answer to the request with this id.
inline Message answer_to(const Request& request, long id, Bytes data) {
  return {.response = true,
          .id = id,
          .netfn = static_cast<std::uint8_t>(request.netfn | 1U),
          .command = request.command,
          .data = std::move(data)};
}

/// A good reading: 321 W now, minimum 100, maximum 500, average 300, measurement active.
inline Bytes good_reading() {
  return {0x00, 0xdc, 0x41, 0x01, 0x64, 0x00, 0xf4, 0x01, 0x2c, 0x01,
          0x00, 0x00, 0x00, 0x00, 0xe8, 0x03, 0x00, 0x00, 0x40};
}

}  // namespace ceems::exporter::ipmi
