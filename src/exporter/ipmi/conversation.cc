#include "exporter/ipmi/conversation.h"

#include <linux/ipmi.h>
#include <linux/ipmi_msgdefs.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace ceems::exporter::ipmi {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStopPoll{100};

class OpenIpmiPort final : public Port {
 public:
  explicit OpenIpmiPort(UniqueFd fd) : fd_(std::move(fd)) {}

  Result<> send(const Request& request, long id) override {
    ipmi_system_interface_addr address{};
    address.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE;
    address.channel = IPMI_BMC_CHANNEL;
    address.lun = request.lun;
    Bytes data = request.data;
    ipmi_req message{};
    message.addr = reinterpret_cast<unsigned char*>(&address);
    message.addr_len = sizeof(address);
    message.msgid = id;
    message.msg.netfn = request.netfn;
    message.msg.cmd = request.command;
    message.msg.data_len = static_cast<unsigned short>(data.size());
    message.msg.data = data.data();
    if (::ioctl(fd_.get(), IPMICTL_SEND_COMMAND, &message) != 0) {
      return fail(gone("sending to the IPMI device"));
    }
    return {};
  }

  Result<Message> receive(Deadline deadline, const std::stop_token& stop) override {
    while (true) {
      if (auto message = take()) {
        return *std::move(message);
      }
      if (stop.stop_requested()) {
        return fail(ErrorCode::kUnavailable, "stopped");
      }
      const auto left =
          std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) {
        return fail(ErrorCode::kTimeout, "the BMC does not answer in time");
      }
      pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      ::poll(&waiting, 1, static_cast<int>(std::min(left, kStopPoll).count()));
      if ((waiting.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
        return fail(ErrorCode::kUnavailable, "the IPMI device is gone");
      }
    }
  }

 private:
  static Error gone(const char* what) {
    Error error = errno_error(errno, what);
    error.code = ErrorCode::kUnavailable;
    return error;
  }

  /// The next message if one is waiting.
  std::optional<Result<Message>> take() {
    ipmi_addr address{};
    std::array<unsigned char, IPMI_MAX_MSG_LENGTH> data{};
    ipmi_recv received{};
    received.addr = reinterpret_cast<unsigned char*>(&address);
    received.addr_len = sizeof(address);
    received.msg.data = data.data();
    received.msg.data_len = static_cast<unsigned short>(data.size());
    // EMSGSIZE: the message is longer than the buffer, which has the part that fits.
    if (::ioctl(fd_.get(), IPMICTL_RECEIVE_MSG_TRUNC, &received) != 0 && errno != EMSGSIZE) {
      if (errno == EAGAIN || errno == EINTR) {
        return std::nullopt;
      }
      return fail(gone("receiving from the IPMI device"));
    }
    const std::size_t size = std::min<std::size_t>(received.msg.data_len, data.size());
    return Message{.response = received.recv_type == IPMI_RESPONSE_RECV_TYPE,
                   .id = received.msgid,
                   .netfn = received.msg.netfn,
                   .command = received.msg.cmd,
                   .data = Bytes(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size))};
  }

  UniqueFd fd_;
};

}  // namespace

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

Result<std::unique_ptr<Port>> open_ipmi(const std::filesystem::path& dev,
                                        long number,
                                        const OpenDevice& open) {
  std::optional<Error> refusal;
  for (const char* stem : {"ipmi", "ipmi/", "ipmidev/"}) {
    const std::string path = fmt::format("{}/{}{}", dev.string(), stem, number);
    auto fd = open(path.c_str());
    if (!fd) {
      if (fd.error().code != ErrorCode::kNotFound && !refusal) {
        refusal = std::move(fd).error();
      }
      continue;
    }
    unsigned int own_address = 0;
    if (::ioctl(fd->get(), IPMICTL_GET_MY_ADDRESS_CMD, &own_address) != 0) {
      return fail(ErrorCode::kUnavailable, "{}: not an IPMI device", path);
    }
    return std::make_unique<OpenIpmiPort>(*std::move(fd));
  }
  if (refusal) {
    return fail(*std::move(refusal));
  }
  return fail(ErrorCode::kNotFound,
              "no IPMI device number {} in {} (load the modules ipmi_si and ipmi_devintf)", number,
              dev.string());
}

}  // namespace ceems::exporter::ipmi
