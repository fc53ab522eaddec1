#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// Parsers of the files in a control group's directory. Text in, structs out; nothing is opened.
// Formats: Linux Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/*.rst, PSI: accounting/
// psi.rst. Every Error is kParse and quotes the offending line; the caller names the file.
namespace ceems::host {

/// "max" in a limit file of cgroup v2.
inline constexpr std::uint64_t kCgroupMax = std::numeric_limits<std::uint64_t>::max();

/// A file with one number: memory.current, memory.max, cpuacct.usage. "max" is kCgroupMax, a
/// negative number is 0 (v1 writes -1 for "no limit" in some files). Errors: empty, not a number.
Result<std::uint64_t> parse_cgroup_value(std::string_view text);

/// cpu.stat of v2, microseconds. The three keys exist in every cgroup, with or without the cpu
/// controller; a missing one is 0.
struct CgroupCpuStat {
  std::uint64_t usage_usec = 0;
  std::uint64_t user_usec = 0;
  std::uint64_t system_usec = 0;
};
Result<CgroupCpuStat> parse_cgroup_cpu_stat(std::string_view text);

/// cpuacct.stat of v1 in USER_HZ ticks (always 100 per second). Both keys must be there.
struct CpuacctStat {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
};
Result<CpuacctStat> parse_cpuacct_stat(std::string_view text);

/// What we take of memory.stat, bytes. v1: the hierarchical total_* keys.
struct CgroupMemoryStat {
  std::uint64_t rss = 0;    ///< v1 total_rss, v2 anon
  std::uint64_t cache = 0;  ///< v1 total_cache, v2 file
  std::uint64_t inactive_file = 0;
};
Result<CgroupMemoryStat> parse_memory_stat_v1(std::string_view text);
Result<CgroupMemoryStat> parse_memory_stat_v2(std::string_view text);

/// memory.events of v2.
struct CgroupMemoryEvents {
  std::uint64_t max = 0;
  std::uint64_t oom = 0;
  std::uint64_t oom_kill = 0;
};
Result<CgroupMemoryEvents> parse_memory_events(std::string_view text);

/// *.pressure: total stall time in microseconds; 0 where the line is missing (cpu.pressure has no
/// `full` line before Linux 5.13).
struct CgroupPressure {
  std::uint64_t some_usec = 0;
  std::uint64_t full_usec = 0;
};
Result<CgroupPressure> parse_pressure(std::string_view text);

/// Block I/O of one device.
struct CgroupIo {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t read_requests = 0;
  std::uint64_t write_requests = 0;
};
/// io.stat of v2. Unknown keys are skipped, missing ones are 0; a line that does not start with
/// numeric MAJ:MIN ends the list (the kernel writes "(unknown)" lines last).
std::vector<CgroupIo> parse_io_stat(std::string_view text);

/// One value of a blkio.* file of v1 with operations Read and Write; other operations are skipped.
struct BlkioValue {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  bool write = false;
  std::uint64_t value = 0;
};
Result<std::vector<BlkioValue>> parse_blkio(std::string_view text);

/// One line of rdma.current. "max" is 4294967295, a number out of range 0.
struct CgroupRdma {
  std::string device;
  std::uint32_t hca_handles = 0;
  std::uint32_t hca_objects = 0;
};
/// Lines that are not exactly DEVICE hca_handle=N hca_object=N (in any order) are skipped.
std::vector<CgroupRdma> parse_rdma(std::string_view text);

/// Number of CPUs in a list like "0-3,8,10-11" (cpuset.cpus). Errors: empty list, bad item.
Result<std::uint64_t> count_cpu_list(std::string_view text);

/// CPUs granted by a quota: cpu.max of v2 ("200000 100000"); nothing for "max" or bad text.
std::optional<double> parse_cpu_max(std::string_view text);

/// Appends the pids of cgroup.procs; lines that are no positive number are skipped.
void parse_cgroup_procs(std::string_view text, std::vector<int>& pids);

/// Value of `populated` in cgroup.events: whether the subtree holds a live process.
std::optional<bool> parse_populated(std::string_view text);

/// Decodes a path as systemd escapes it on disk: \xNN, and the other escapes of a C string (\n,
/// octal, \uNNNN as UTF-8). Nothing where it is no legal string body: a bare '"' or line end, or an
/// unknown escape.
std::optional<std::string> unescape_path(std::string_view path);

/// MemTotal and SwapTotal of /proc/meminfo in bytes; 0 where missing.
struct MemoryTotals {
  std::uint64_t memory_bytes = 0;
  std::uint64_t swap_bytes = 0;
};
MemoryTotals parse_memory_totals(std::string_view meminfo);

/// Names of block devices by (major, minor), from /proc/diskstats.
using BlockDevices = std::map<std::pair<std::uint32_t, std::uint32_t>, std::string>;
/// Lines with fewer than 14 fields are skipped (old kernels list partitions so); of two lines with
/// the same number the later one counts. Errors: a line whose numbers are none.
Result<BlockDevices> parse_block_devices(std::string_view diskstats);

}  // namespace ceems::host
