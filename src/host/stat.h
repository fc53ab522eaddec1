#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

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

/// All but idle, iowait and steal.
std::uint64_t busy_ticks(const CpuTimes& times);

/// The time of all CPUs, whatever they did. It moves with the clock.
std::uint64_t all_ticks(const CpuTimes& times);

struct Stat {
  CpuTimes total;        ///< the aggregate line "cpu"
  std::size_t cpus = 0;  ///< the number of lines "cpuN", which is the number of CPUs online
};

/// A line "cpuN".
struct BusyCpu {
  int cpu = 0;
  std::uint64_t ticks = 0;  ///< as busy_ticks() of its times
};

/// Parses the text of /proc/stat up to the last cpu line. Fields that are missing at the end of the
/// aggregate line are 0. kParse: the aggregate line is missing or one of its fields is not a
/// number.
Result<Stat> parse_stat(std::string_view text);

/// The CPUs that are online, in the order of their numbers, in `cpus`, whose memory is reused.
/// Lines with fields that are not numbers are left out.
void parse_busy_cpus(std::string_view text, std::vector<BusyCpu>& cpus);

}  // namespace ceems::host
