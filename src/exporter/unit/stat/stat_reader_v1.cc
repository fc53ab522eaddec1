// The statistics of a unit in cgroup v1.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "exporter/unit/stat/stat_files.h"
#include "exporter/unit/stat/stat_reader.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {

Result<> StatReader::read_v1_memory(UnitFiles& files,
                                    const std::string& path,
                                    StatScope scope,
                                    UnitStats& stats) {
  const FileText text = text_of(files, File::kMemoryStat, path, scope.look_again);
  if (auto fault = fault_of(text, path, "memory.stat")) {
    return fail(*std::move(fault));
  }
  if (!text.ok()) {
    if (scope.limits) {
      set_memory_limit(0, stats);
    }
    return {};
  }
  auto memory = host::parse_memory_stat_v1(text.text);
  if (!memory) {
    return fail(malformed(std::move(memory).error(), path, "memory.stat"));
  }
  stats.memory_rss_bytes = memory->rss;
  stats.memory_cache_bytes = memory->cache;
  stats.memory_inactive_file_bytes = memory->inactive_file;
  stats.memory_shmem_bytes = memory->shmem;
  stats.memory_held_bytes = memory->held();

  // Content that is not a number is an error here. The first file that does not exist ends the
  // group.
  struct Value {
    File file;
    std::uint64_t value = 0;
  };
  std::array<Value, 6> values = {{{File::kMemoryUsed},
                                  {File::kMemoryEvents},
                                  {File::kMemoryLimit},
                                  {File::kSwapUsed},
                                  {File::kSwapFails},
                                  {File::kSwapLimit}}};
  const std::size_t wanted = options_.swap ? values.size() : 3;
  for (std::size_t i = 0; i < wanted; ++i) {
    Value& value = values.at(i);
    if (!scope.limits && (value.file == File::kMemoryLimit || value.file == File::kSwapLimit)) {
      continue;
    }
    const char* const name = spec_of(value.file).name;
    const FileText single = text_of(files, value.file, path, scope.look_again);
    if (auto fault = fault_of(single, path, name)) {
      return fail(*std::move(fault));
    }
    if (!single.ok()) {
      break;
    }
    auto number = host::parse_cgroup_value(single.text);
    if (!number) {
      return fail(malformed(std::move(number).error(), path, name));
    }
    value.value = *number == host::kCgroupMax ? 0 : *number;
  }
  stats.memory_used_bytes = values[0].value;
  stats.memory_fail_count = values[1].value;
  stats.memsw_used_bytes = values[3].value;
  stats.memsw_fail_count = values[4].value;
  if (!scope.limits) {
    return {};
  }
  set_memory_limit(static_cast<double>(values[2].value), stats);
  stats.memsw_total_bytes = static_cast<double>(values[5].value);
  const auto host_bytes = static_cast<double>(totals_.memory_bytes + totals_.swap_bytes);
  if (generic() && host_bytes > 0 && stats.memsw_total_bytes > host_bytes) {
    stats.memsw_total_bytes = host_bytes;
  }
  return {};
}

// Adds the values of one blkio file. Returns whether there were any.
Result<bool> StatReader::read_blkio_file(
    UnitFiles& files, File file, const std::string& path, bool again, UnitStats& stats) {
  const char* const name = spec_of(file).name;
  const FileText text = text_of(files, file, path, again);
  if (auto fault = fault_of(text, path, name)) {
    return fail(*std::move(fault));
  }
  auto values = host::parse_blkio(text.ok() ? text.text : std::string_view{});
  if (!values) {
    return fail(malformed(std::move(values).error(), path, name));
  }
  const bool bytes = file == File::kIoBytes || file == File::kCfqBytes || file == File::kTreeBytes;
  for (const host::BlkioValue& value : *values) {
    BlockIo& io = block_io_of(stats, value.major, value.minor);
    if (bytes) {
      (value.write ? io.write_bytes : io.read_bytes) += value.value;
    } else {
      (value.write ? io.write_requests : io.read_requests) += value.value;
    }
  }
  return !values->empty();
}

// Uses the CFQ scheduler's files (Linux < 5.0) if they hold values, otherwise the throttling
// layer's.
Result<> StatReader::read_v1_block_io(UnitFiles& files,
                                      const std::string& path,
                                      bool again,
                                      UnitStats& stats) {
  const std::array<std::pair<File, File>, 2> sources = {
      {{File::kCfqRequests, File::kCfqBytes},
       generic() ? std::pair{File::kTreeRequests, File::kTreeBytes}
                 : std::pair{File::kIoRequests, File::kIoBytes}}};
  for (const auto& [requests, bytes] : sources) {
    CEEMS_TRY(some_requests, read_blkio_file(files, requests, path, again, stats));
    CEEMS_TRY(some_bytes, read_blkio_file(files, bytes, path, again, stats));
    if (some_requests || some_bytes) {
      break;
    }
  }
  return {};
}

Result<> StatReader::read_v1(UnitFiles& files,
                             const std::string& path,
                             StatScope scope,
                             UnitStats& stats) {
  auto done = read_v1_memory(files, path, scope, stats);
  if (done && options_.block_io) {
    done = read_v1_block_io(files, path, scope.look_again, stats);
  }
  return done;
}

}  // namespace ceems::exporter
