#pragma once

#include <string_view>

#include "base/result.h"
#include "exporter/ipmi/dcmi.h"

namespace ceems::exporter::ipmi {

/// The program whose output is parsed.
enum class Format {
  kText,   ///< FreeIPMI's ipmi-dcmi, ipmitool, ipmiutil
  kCapmc,  ///< Cray's capmc: power of the whole system, not of this node
};

/// Parses the standard output of a program. Each line is parsed on its own, and the first that
/// matches counts. kUnavailable: the tool reports that power is not measured, or an error. kParse:
/// not text, an unexpected form, or no line with the state. A quantity that is missing or not a
/// number is 0.
Result<Power> parse_power_output(Format format, std::string_view output);

}  // namespace ceems::exporter::ipmi
