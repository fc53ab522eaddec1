#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::host {

/// What /proc/cpuinfo says about the CPUs online, for x86, ARM, POWER, RISC-V and s390.
struct Cpuinfo {
  std::size_t processors = 0;      ///< logical CPUs listed
  std::size_t physical_cores = 0;  ///< "cpu cores" summed over sockets; 0 where it is not told
  std::size_t sockets = 0;         ///< distinct "physical id"; 0 where it is not told
  std::string vendor;              ///< "vendor_id" of the first CPU; empty where absent
  std::string model_name;          ///< "model name" (or "cpu" on POWER) of the first CPU
  int family = -1;                 ///< "cpu family" of the first CPU, -1 where absent
  int model = -1;                  ///< "model" of the first CPU, -1 where absent
};

/// Parses the text of /proc/cpuinfo. Lines without a colon and values that are no number where one
/// is expected are skipped. kParse: no processor entry at all.
Result<Cpuinfo> parse_cpuinfo(std::string_view text);

}  // namespace ceems::host
