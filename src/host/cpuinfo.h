#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::host {

/// The CPUs that are online according to /proc/cpuinfo, for x86, ARM, POWER, RISC-V and s390.
struct Cpuinfo {
  std::size_t processors = 0;      ///< logical CPUs listed
  std::size_t physical_cores = 0;  ///< "cpu cores" summed over sockets; 0 if not listed
  std::size_t sockets = 0;         ///< distinct values of "physical id"; 0 if not listed
  std::string vendor;              ///< "vendor_id" of the first CPU; empty if missing
  std::string model_name;          ///< "model name" (or "cpu" on POWER) of the first CPU
  int family = -1;                 ///< "cpu family" of the first CPU; -1 if missing
  int model = -1;                  ///< "model" of the first CPU; -1 if missing
};

/// Parses the text of /proc/cpuinfo. Skips lines without a colon, and values that should be numbers
/// but are not. kParse: there is no processor entry.
Result<Cpuinfo> parse_cpuinfo(std::string_view text);

}  // namespace ceems::host
