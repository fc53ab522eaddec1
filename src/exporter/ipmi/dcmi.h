#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "exporter/ipmi/conversation.h"

namespace ceems::exporter::ipmi {

/// Power of a node in watts; 0 if unknown.
struct Power {
  double current = 0;
  double minimum = 0;  ///< in the BMC's sampling period, as the next two
  double maximum = 0;
  double average = 0;
};

/// 0 for what a node cannot draw: BMCs without a value answer with all bits of 15 or 16 set.
double plausible_watts(double watts);

/// "Get Power Reading" in the mode of system power statistics (DCMI 1.5, section 6.6.1).
Request power_reading_request();
/// Decodes the answer. kUnavailable: a completion code other than 0, or power measurement is off.
/// kParse: the answer is too short or not a DCMI answer.
Result<Power> decode_power_reading(std::span<const std::uint8_t> answer);

/// Whether the answer has a completion code (its first byte) and that is 0. kUnavailable with the
/// code's meaning; kParse: the answer is empty.
Result<> check_completion_code(std::span<const std::uint8_t> answer);

/// "Get LAN Configuration Parameters", IP address of channel 1 (IPMI 2.0, section 23.2).
Request lan_address_request();
/// The address as "192.0.2.1". kUnavailable also if the address is not set (0.0.0.0).
Result<std::string> decode_lan_address(std::span<const std::uint8_t> answer);

}  // namespace ceems::exporter::ipmi
