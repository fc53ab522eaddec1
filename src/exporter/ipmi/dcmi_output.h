#pragma once

#include <string_view>

#include "base/result.h"
#include "exporter/ipmi/dcmi.h"

namespace ceems::exporter::ipmi {

/// Which program's output it is.
enum class Format {
  kText,   ///< FreeIPMI's ipmi-dcmi, ipmitool, ipmiutil
  kCapmc,  ///< Cray's capmc: power of the whole system, not of this node
};

/// Parses what a program printed on stdout. Every line is looked at alone, the first that fits
/// counts. kUnavailable: the tool says that power is not measured, or reports an error. kParse: no
/// text, not the expected form, no line about the state. A quantity that is missing or no number is
/// 0.
Result<Power> parse_power_output(Format format, std::string_view output);

}  // namespace ceems::exporter::ipmi
