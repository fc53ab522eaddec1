#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace ceems::host {

/// CPU times of /proc/stat (proc_stat(5)) in units of 1/100 s.
struct CpuTimes {
  std::uint64_t user = 0;  ///< guest included
  std::uint64_t nice = 0;  ///< guest_nice included
  std::uint64_t system = 0;
  std::uint64_t idle = 0;
  std::uint64_t iowait = 0;
  std::uint64_t irq = 0;
  std::uint64_t softirq = 0;
  std::uint64_t steal = 0;
};

struct Stat {
  CpuTimes total;        ///< the aggregate line "cpu"
  std::size_t cpus = 0;  ///< lines "cpuN": CPUs online
};

/// Parses the text of /proc/stat up to the last cpu line. Fields missing at the end of the
/// aggregate line are 0. kParse: no aggregate line, or a field of it that is no number.
Result<Stat> parse_stat(std::string_view text);

}  // namespace ceems::host
