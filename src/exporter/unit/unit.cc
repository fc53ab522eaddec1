#include "exporter/unit/unit.h"

#include <algorithm>

namespace ceems::exporter {

void UnitStats::forget_levels() {
  cpus = 0;
  reserved_cpus = 0;
  cpu_set = nullptr;
  memory_rss_bytes = memory_cache_bytes = memory_used_bytes = 0;
  memory_total_bytes = 0;
  memory_inactive_file_bytes = 0;
  memory_shmem_bytes.reset();
  memory_held_bytes = 0;
  memsw_used_bytes = 0;
  memsw_total_bytes = 0;
  rdma.clear();
}

void UnitStats::add(const UnitStats& other) {
  const double total = cpu_seconds() + other.cpu_seconds();
  const bool fine = cpu_total_seconds > 0 || other.cpu_total_seconds > 0;
  cpu_user_seconds += other.cpu_user_seconds;
  cpu_system_seconds += other.cpu_system_seconds;
  cpu_total_seconds = fine ? total : 0;
  cpus = std::max(cpus, other.cpus);
  cpu_psi_seconds += other.cpu_psi_seconds;
  memory_rss_bytes += other.memory_rss_bytes;
  memory_cache_bytes += other.memory_cache_bytes;
  memory_used_bytes += other.memory_used_bytes;
  memory_inactive_file_bytes += other.memory_inactive_file_bytes;
  if (other.memory_shmem_bytes) {
    memory_shmem_bytes = memory_shmem_bytes.value_or(0) + *other.memory_shmem_bytes;
  }
  memory_held_bytes += other.memory_held_bytes;
  memory_fail_count += other.memory_fail_count;
  memsw_used_bytes += other.memsw_used_bytes;
  memsw_fail_count += other.memsw_fail_count;
  memory_psi_seconds += other.memory_psi_seconds;
  if (other.io_stalled_seconds) {
    io_stalled_seconds = io_stalled_seconds.value_or(0) + *other.io_stalled_seconds;
  }
  for (const BlockIo& more : other.block_io) {
    const auto same = std::ranges::find(block_io, more.device, &BlockIo::device);
    if (same == block_io.end()) {
      block_io.push_back(more);
      continue;
    }
    same->read_bytes += more.read_bytes;
    same->write_bytes += more.write_bytes;
    same->read_requests += more.read_requests;
    same->write_requests += more.write_requests;
  }
  rdma.insert(rdma.end(), other.rdma.begin(), other.rdma.end());
  error = error || other.error;
}

void add_part(Unit& unit, const Unit& part) {
  unit.pids.insert(unit.pids.end(), part.pids.begin(), part.pids.end());
  unit.children.insert(unit.children.end(), part.children.begin(), part.children.end());
  unit.stats.add(part.stats);
  unit.last_seen = std::max(unit.last_seen, part.last_seen);
}

}  // namespace ceems::exporter
