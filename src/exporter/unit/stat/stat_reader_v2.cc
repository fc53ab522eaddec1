// The statistics of a unit in cgroup v2.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "exporter/unit/stat/stat_files.h"
#include "exporter/unit/stat/stat_reader.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {

Result<> StatReader::read_v2(UnitFiles& files,
                             const std::string& path,
                             StatScope scope,
                             UnitStats& stats) {
  const bool again = scope.look_again;
  const FileText stat_text = text_of(files, File::kMemoryStat, path, again);
  if (auto fault = fault_of(stat_text, path, "memory.stat")) {
    return fail(*std::move(fault));
  }
  if (stat_text.ok()) {
    auto memory = host::parse_memory_stat_v2(stat_text.text);
    if (!memory) {
      return fail(malformed(std::move(memory).error(), path, "memory.stat"));
    }
    stats.memory_rss_bytes = memory->rss;
    stats.memory_cache_bytes = memory->cache;
    stats.memory_inactive_file_bytes = memory->inactive_file;
    stats.memory_shmem_bytes = memory->shmem;
    stats.memory_held_bytes = memory->held();
  }
  const FileText events_text = text_of(files, File::kMemoryEvents, path, again);
  if (auto fault = fault_of(events_text, path, "memory.events")) {
    return fail(*std::move(fault));
  }
  if (events_text.ok()) {
    auto events = host::parse_memory_events(events_text.text);
    if (!events) {
      return fail(malformed(std::move(events).error(), path, "memory.events"));
    }
    stats.memory_fail_count = events->oom;
  }
  stats.memory_used_bytes = value_of(text_of(files, File::kMemoryUsed, path, again));

  const auto or_host = [](std::uint64_t limit, std::uint64_t first, std::uint64_t second) {
    if (limit == host::kCgroupMax && (first > 0 || second > 0)) {
      return static_cast<double>(first > 0 ? first : second);
    }
    return static_cast<double>(limit);
  };
  if (scope.limits) {
    const std::uint64_t limit = value_of(text_of(files, File::kMemoryLimit, path, again));
    set_memory_limit(or_host(limit, totals_.memory_bytes, 0), stats);
  }
  if (options_.swap) {
    stats.memsw_used_bytes = value_of(text_of(files, File::kSwapUsed, path, again));
  }
  if (options_.swap && scope.limits) {
    const std::uint64_t swap = value_of(text_of(files, File::kSwapLimit, path, again));
    stats.memsw_total_bytes = or_host(swap, totals_.swap_bytes, totals_.memory_bytes);
  }
  if (options_.pressure) {
    const auto stalled = [&](File file) {
      const FileText text = text_of(files, file, path, again);
      const auto pressure = text.ok() ? host::parse_pressure(text.text) : host::CgroupPressure{};
      return pressure ? static_cast<double>(pressure->full_usec) / kMicroseconds : 0;
    };
    stats.cpu_psi_seconds = stalled(File::kCpuPeriod);
    stats.memory_psi_seconds = stalled(File::kSwapFails);
    stats.io_stalled_seconds = io_stalled_seconds(files, path);
  }
  if (options_.block_io) {
    if (const FileText text = text_of(files, File::kIoBytes, path, again); text.ok()) {
      for (const host::CgroupIo& io : host::parse_io_stat(text.text)) {
        BlockIo& sum = block_io_of(stats, io.major, io.minor);
        sum.read_bytes += io.read_bytes;
        sum.write_bytes += io.write_bytes;
        sum.read_requests += io.read_requests;
        sum.write_requests += io.write_requests;
      }
    }
  }
  return {};
}

}  // namespace ceems::exporter
