#include "exporter/hsmp/hsmp.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

// The messages of HSMP. The kernel's header exists for x86-64 alone; on other machines the numbers
// are enough, because there is no device to send them to.
#if defined(__x86_64__)
#include <asm/amd_hsmp.h>
#else
inline constexpr std::uint32_t HSMP_GET_SOCKET_POWER = 0x04;
inline constexpr std::uint32_t HSMP_GET_SOCKET_POWER_LIMIT = 0x06;
inline constexpr std::uint32_t HSMP_GET_SOCKET_POWER_LIMIT_MAX = 0x07;
inline constexpr std::uint32_t HSMP_GET_FCLK_MCLK = 0x0f;
inline constexpr std::uint32_t HSMP_GET_CCLK_THROTTLE_LIMIT = 0x10;
inline constexpr std::uint32_t HSMP_GET_C0_PERCENT = 0x11;
inline constexpr std::uint32_t HSMP_GET_DDR_BANDWIDTH = 0x14;
#endif

namespace ceems::exporter::hsmp {
namespace {

constexpr std::uint16_t kMaxSockets = 16;
constexpr double kMilli = 1e-3;

#if defined(__x86_64__)
static_assert(std::tuple_size_v<Words> == HSMP_MAX_MSG_LEN);

class DevicePort final : public Port {
 public:
  explicit DevicePort(UniqueFd fd) : fd_(std::move(fd)) {}

  Result<Words> ask(std::uint16_t socket, std::uint32_t message, std::uint16_t words) override {
    hsmp_message request{};
    request.msg_id = message;
    request.response_sz = words;
    request.sock_ind = socket;
    if (::ioctl(fd_.get(), HSMP_IOCTL_CMD, &request) != 0) {
      const int number = errno;
      Error error =
          errno_error(number, fmt::format("message {:#04x} to socket {}", message, socket));
      error.code = number == ENODEV   ? ErrorCode::kNotFound
                   : number == ENOMSG ? ErrorCode::kInvalidArgument
                                      : ErrorCode::kUnavailable;
      return fail(std::move(error));
    }
    Words answer{};
    std::copy(std::begin(request.args), std::end(request.args), answer.begin());
    return answer;
  }

 private:
  UniqueFd fd_;
};
#endif

}  // namespace

#if defined(__x86_64__)
Result<std::unique_ptr<Port>> open_hsmp(const char* path, const OpenDevice& open) {
  auto fd = open(path);
  if (!fd) {
    if (fd.error().code == ErrorCode::kNotFound) {
      return fail(ErrorCode::kNotFound, "no device {} (load the module amd_hsmp)", path);
    }
    return fail(std::move(fd).error());
  }
  return std::make_unique<DevicePort>(*std::move(fd));
}
#else
Result<std::unique_ptr<Port>> open_hsmp(const char* /*path*/, const OpenDevice& /*open*/) {
  return fail(ErrorCode::kNotFound, "HSMP needs an AMD processor (x86-64)");
}
#endif

Result<> Reader::open() {
  if (port_) {
    return {};
  }
  CEEMS_TRY(port, open_());
  port_ = std::move(port);
  return {};
}

Result<std::vector<Socket>> Reader::read(const std::stop_token& stop) {
  CEEMS_TRY(open());
  std::vector<Socket> sockets;
  std::optional<Error> error;
  for (std::uint16_t number = 0; number < kMaxSockets && !stop.stop_requested(); ++number) {
    const auto power = port_->ask(number, HSMP_GET_SOCKET_POWER, 1);
    if (!power && power.error().code == ErrorCode::kNotFound) {
      break;  // there are no more
    }
    if (!power) {
      error = error ? error : power.error();
      continue;
    }
    Socket socket{.number = number, .power_watts = kMilli * (*power)[0]};
    read_others(socket);
    sockets.push_back(socket);
  }
  if (sockets.empty()) {
    return fail(error ? *std::move(error)
                      : Error{ErrorCode::kUnavailable, "the kernel reports no socket with HSMP"});
  }
  return sockets;
}

std::optional<Words> Reader::ask(std::uint16_t socket, std::uint32_t message, std::uint16_t words) {
  if (unknown_.contains({socket, message})) {
    return std::nullopt;
  }
  const auto answer = port_->ask(socket, message, words);
  if (!answer && answer.error().code == ErrorCode::kInvalidArgument) {
    unknown_.emplace(socket, message);
  }
  return answer ? std::optional(*answer) : std::nullopt;
}

void Reader::read_others(Socket& socket) {
  if (const auto words = ask(socket.number, HSMP_GET_SOCKET_POWER_LIMIT, 1)) {
    socket.power_cap_watts = kMilli * (*words)[0];
  }
  if (const auto words = ask(socket.number, HSMP_GET_SOCKET_POWER_LIMIT_MAX, 1)) {
    socket.power_cap_max_watts = kMilli * (*words)[0];
  }
  if (const auto words = ask(socket.number, HSMP_GET_C0_PERCENT, 1)) {
    socket.c0_percent = (*words)[0];
  }
  if (const auto words = ask(socket.number, HSMP_GET_DDR_BANDWIDTH, 1)) {
    socket.ddr_max_gbps = (*words)[0] >> 20U;
    socket.ddr_utilized_gbps = ((*words)[0] >> 8U) & 0xFFFU;
  }
  if (const auto words = ask(socket.number, HSMP_GET_FCLK_MCLK, 2)) {
    socket.fclk_mhz = (*words)[0];
    socket.mclk_mhz = (*words)[1];
  }
  if (const auto words = ask(socket.number, HSMP_GET_CCLK_THROTTLE_LIMIT, 1)) {
    socket.cclk_limit_mhz = (*words)[0];
  }
}

}  // namespace ceems::exporter::hsmp
