#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace ceems::host {

/// CPU times of /proc/stat (proc_stat(5)), in units of 1/100 s.
struct CpuTimes {
  std::uint64_t user = 0;  ///< includes guest
  std::uint64_t nice = 0;  ///< includes guest_nice
  std::uint64_t system = 0;
  std::uint64_t idle = 0;
  std::uint64_t iowait = 0;
  std::uint64_t irq = 0;
  std::uint64_t softirq = 0;
  std::uint64_t steal = 0;
};

struct Stat {
  CpuTimes total;        ///< the aggregate line "cpu"
  std::size_t cpus = 0;  ///< the number of lines "cpuN", which is the number of CPUs online
};

/// Parses the text of /proc/stat up to the last cpu line. Fields that are missing at the end of the
/// aggregate line are 0. kParse: the aggregate line is missing or one of its fields is not a
/// number.
Result<Stat> parse_stat(std::string_view text);

}  // namespace ceems::host
