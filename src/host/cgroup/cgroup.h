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

// Parsers of the files in a cgroup's directory. They take text and return structs; they do not open
// files. Formats: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/*.rst and accounting/psi.rst
// in the Linux sources. Every Error is kParse and quotes the bad line; the caller adds the file
// name.
namespace ceems::host {

/// "max" in a limit file of cgroup v2.
inline constexpr std::uint64_t kCgroupMax = std::numeric_limits<std::uint64_t>::max();

/// Parses a file with one number: memory.current, memory.max, cpuacct.usage. "max" is kCgroupMax,
/// and a negative number is 0 (v1 writes -1 for "no limit" in some files). Errors: the text is
/// empty or not a number.
Result<std::uint64_t> parse_cgroup_value(std::string_view text);

/// cpu.stat of v2, in microseconds. These three keys exist in every cgroup, with or without the cpu
/// controller. A missing key is 0.
struct CgroupCpuStat {
  std::uint64_t usage_usec = 0;
  std::uint64_t user_usec = 0;
  std::uint64_t system_usec = 0;
};
/// kParse if a value is not a number.
Result<CgroupCpuStat> parse_cgroup_cpu_stat(std::string_view text);

/// cpuacct.stat of v1 in ticks of USER_HZ (always 100 per second). Both keys are required.
struct CpuacctStat {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
};
Result<CpuacctStat> parse_cpuacct_stat(std::string_view text);

/// The values of memory.stat that we use, in bytes. For v1 they are the hierarchical total_* keys.
struct CgroupMemoryStat {
  std::uint64_t rss = 0;    ///< v1 total_rss, v2 anon
  std::uint64_t cache = 0;  ///< v1 total_cache, v2 file
  std::uint64_t inactive_file = 0;
  std::optional<std::uint64_t> shmem = {};  ///< v1 total_shmem; part of cache
  std::uint64_t kernel = 0;                 ///< v2 since Linux 5.18, otherwise 0

  /// Memory that the kernel cannot give up as it does file cache.
  [[nodiscard]] std::uint64_t held() const { return rss + shmem.value_or(0) + kernel; }
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

/// *.pressure: the total stall times in microseconds. They are 0 if their line is missing
/// (cpu.pressure has no `full` line before Linux 5.13).
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
/// io.stat of v2. Unknown keys are skipped, and missing ones are 0. A line that does not start with
/// a numeric MAJ:MIN ends the list, because the kernel writes "(unknown)" lines last.
std::vector<CgroupIo> parse_io_stat(std::string_view text);

/// One value of a v1 blkio.* file for the operation Read or Write. Other operations are skipped.
struct BlkioValue {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  bool write = false;
  std::uint64_t value = 0;
};
Result<std::vector<BlkioValue>> parse_blkio(std::string_view text);

/// One line of rdma.current. "max" is 4294967295, and a number that is out of range is 0.
struct CgroupRdma {
  std::string device;
  std::uint32_t hca_handles = 0;
  std::uint32_t hca_objects = 0;
};
/// Skips lines that are not exactly DEVICE hca_handle=N hca_object=N, in either order.
std::vector<CgroupRdma> parse_rdma(std::string_view text);

/// The number of CPUs in a list like "0-3,8,10-11" (cpuset.cpus). Errors: empty list, bad item.
Result<std::uint64_t> count_cpu_list(std::string_view text);

/// The CPUs that a quota grants: cpu.max of v2 ("200000 100000"). Nothing for "max" or bad text.
std::optional<double> parse_cpu_max(std::string_view text);

/// Appends the pids in cgroup.procs. Skips lines that are not a positive number.
void parse_cgroup_procs(std::string_view text, std::vector<int>& pids);

/// The value of `populated` in cgroup.events: whether the subtree contains a live process.
std::optional<bool> parse_populated(std::string_view text);

/// Decodes a path that systemd has escaped: \xNN, and the other escapes of a C string (\n, octal,
/// \uNNNN as UTF-8). Nothing if the text contains a bare '"', a line end or an unknown escape.
std::optional<std::string> unescape_path(std::string_view path);

/// MemTotal and SwapTotal of /proc/meminfo in bytes; 0 if missing.
struct MemoryTotals {
  std::uint64_t memory_bytes = 0;
  std::uint64_t swap_bytes = 0;
};
MemoryTotals parse_memory_totals(std::string_view meminfo);

/// The names of block devices by (major, minor), from /proc/diskstats.
using BlockDevices = std::map<std::pair<std::uint32_t, std::uint32_t>, std::string>;
/// Skips lines with fewer than 14 fields (old kernels list partitions like that). If two lines have
/// the same numbers, the later one counts. Errors: a line whose device numbers are not numbers.
Result<BlockDevices> parse_block_devices(std::string_view diskstats);

}  // namespace ceems::host
