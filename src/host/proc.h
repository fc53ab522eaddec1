#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// One line of /proc/meminfo (proc_meminfo(5)).
struct MeminfoLine {
  std::string_view key;     ///< before the colon, e.g. "Active(anon)"; points into the text
  std::uint64_t value = 0;  ///< bytes if `is_bytes`, otherwise a plain count
  bool is_bytes = false;
};

/// Replaces the content of `lines`, whose memory is reused. Skips blank lines. kParse, with the
/// line number: a line is not "key: number [unit]".
Result<> parse_meminfo(std::string_view text, std::vector<MeminfoLine>& lines);

}  // namespace ceems::host
