#include "exporter/ipmi/dcmi.h"

#include <string_view>

#include <fmt/format.h>

namespace ceems::exporter::ipmi {
namespace {

constexpr std::uint8_t kGroupExtension = 0x2c;  // netfn
constexpr std::uint8_t kGetPowerReading = 0x02;
constexpr std::uint8_t kDcmi = 0xdc;  // group extension id
constexpr std::uint8_t kSystemPowerStatistics = 0x01;
constexpr std::uint8_t kMeasurementActive = 0x40;
constexpr std::size_t kPowerAnswerSize = 19;  // completion code included

constexpr std::uint8_t kTransport = 0x0c;  // netfn
constexpr std::uint8_t kGetLanParameters = 0x02;
constexpr std::uint8_t kLanChannel = 0x01;
constexpr std::uint8_t kIpAddress = 0x03;
constexpr std::size_t kAddressAnswerSize = 6;

/// Completion codes of IPMI 2.0, table 5-2, that a BMC may return here.
std::string_view meaning(std::uint8_t code) {
  switch (code) {
    case 0xc0:
      return "node busy";
    case 0xc1:
      return "the BMC does not know this command";
    case 0xc3:
      return "timeout in the BMC";
    case 0xc5:
      return "the reservation of the sensor records was cancelled";
    case 0xca:
      return "the BMC cannot return that many bytes";
    case 0xcb:
      return "the BMC does not have this sensor or record";
    case 0xc7:
    case 0xc8:
    case 0xcc:
      return "the BMC rejects the request as invalid";
    case 0xce:
    case 0xd2:
      return "the BMC cannot answer at present";
    case 0xd4:
      return "insufficient privilege";
    case 0xd5:
      return "not supported in the present state";
    default:
      return "the BMC refuses";
  }
}

}  // namespace

Result<> check_completion_code(std::span<const std::uint8_t> answer) {
  if (answer.empty()) {
    return fail(ErrorCode::kParse, "expected a completion code, got an empty answer");
  }
  if (answer[0] != 0) {
    return fail(ErrorCode::kUnavailable, "completion code {:#04x}: {}", answer[0],
                meaning(answer[0]));
  }
  return {};
}

Request power_reading_request() {
  return {.netfn = kGroupExtension,
          .command = kGetPowerReading,
          .data = {kDcmi, kSystemPowerStatistics, 0, 0}};
}

double plausible_watts(double watts) {
  constexpr double kMaxWatts = 1e6;  // a rack has a tenth of that
  constexpr double kAllOf15 = 32767;
  constexpr double kAllOf16 = 65535;
  const bool good = watts >= 0 && watts <= kMaxWatts && watts != kAllOf15 && watts != kAllOf16;
  return good ? watts : 0;
}

Result<Power> decode_power_reading(std::span<const std::uint8_t> answer) {
  CEEMS_TRY(check_completion_code(answer));
  if (answer.size() < kPowerAnswerSize) {
    return fail(ErrorCode::kParse, "expected a power reading of {1} bytes, got {0}", answer.size(),
                kPowerAnswerSize);
  }
  if (answer[1] != kDcmi) {
    return fail(ErrorCode::kParse, "expected an answer of group DCMI ({1:#04x}), got {0:#04x}",
                answer[1], kDcmi);
  }
  if ((answer[18] & kMeasurementActive) == 0) {
    return fail(ErrorCode::kUnavailable, "power measurement is not active (state {:#04x})",
                answer[18]);
  }
  const auto watts = [&](std::size_t at) {
    return plausible_watts(static_cast<double>(answer[at]) +
                           256.0 * static_cast<double>(answer[at + 1]));
  };
  return Power{.current = watts(2), .minimum = watts(4), .maximum = watts(6), .average = watts(8)};
}

Request lan_address_request() {
  return {
      .netfn = kTransport, .command = kGetLanParameters, .data = {kLanChannel, kIpAddress, 0, 0}};
}

Result<std::string> decode_lan_address(std::span<const std::uint8_t> answer) {
  CEEMS_TRY(check_completion_code(answer));
  if (answer.size() < kAddressAnswerSize) {
    return fail(ErrorCode::kParse, "expected a LAN parameter of {1} bytes, got {0}", answer.size(),
                kAddressAnswerSize);
  }
  if (answer[2] == 0 && answer[3] == 0 && answer[4] == 0 && answer[5] == 0) {
    return fail(ErrorCode::kUnavailable, "the BMC has no IPv4 address on channel 1");
  }
  return fmt::format("{}.{}.{}.{}", answer[2], answer[3], answer[4], answer[5]);
}

}  // namespace ceems::exporter::ipmi
