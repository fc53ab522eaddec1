#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace ceems::exporter {

/// Block I/O of one device since the unit's start.
struct BlockIo {
  std::string device;  ///< kernel name, e.g. "sda"; "major:minor" where it is unknown
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t read_requests = 0;
  std::uint64_t write_requests = 0;
};

/// Current RDMA objects of one host channel adapter.
struct RdmaUse {
  std::string device;
  std::uint32_t hca_handles = 0;
  std::uint32_t hca_objects = 0;
};

/// What the cgroup files of a unit say; docs/exporter/metrics.md has the metrics made of it.
/// Missing files give 0.
struct UnitStats {
  double cpu_user_seconds = 0;
  double cpu_system_seconds = 0;
  double cpus = 0;  ///< CPUs of the allocation
  /// False where `cpus` is only what the machine has: no limit was set for this unit, so it has no
  /// claim on idle power. The same for `memory_reserved` and memory_total_bytes.
  bool cpus_reserved = true;
  bool memory_reserved = true;
  double cpu_psi_seconds = 0;
  std::uint64_t memory_rss_bytes = 0;
  std::uint64_t memory_cache_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  double memory_total_bytes = 0;  ///< limit; host memory where there is none
  std::uint64_t memory_inactive_file_bytes = 0;
  std::uint64_t memory_fail_count = 0;
  std::uint64_t memsw_used_bytes = 0;
  double memsw_total_bytes = 0;
  std::uint64_t memsw_fail_count = 0;
  double memory_psi_seconds = 0;
  std::vector<BlockIo> block_io;
  std::vector<RdmaUse> rdma;
  /// A file was there but unreadable or malformed: the values are the last good ones, 0 where there
  /// were none.
  bool error = false;
};

/// A compute unit of this node: SLURM job, VM, pod, or any cgroup that a pattern names.
struct Unit {
  std::string id;               ///< identifier in the cgroup path
  std::string uuid;             ///< identifier shown to users; equals id except for libvirt
  std::string cgrouphostname;   ///< virtual node name (several slurmd on one host), else empty
  std::string name;             ///< last component of the path, printable
  std::string path;             ///< relative to the hierarchy root, as on disk, with leading '/'
  std::int64_t owner_uid = -1;  ///< whose processes it holds; -1 where not asked for or unknown
  /// Live processes of the whole subtree, and relative paths of all its cgroups, its own included.
  /// Empty until a consumer asked for them (UnitSource::want_processes).
  std::vector<int> pids;
  std::vector<std::string> children;
  UnitStats stats;
  Clock::SystemTime started{};    ///< creation of its cgroup; epoch 0 where it cannot be told
  Clock::SystemTime last_seen{};  ///< when it was last seen alive; end time of an ended unit
  bool ended = false;             ///< gone since an earlier snapshot; stats are the last ones seen
};

/// All units of one manager at one moment; no two have the same (cgrouphostname, uuid). Immutable
/// once published; shared by every consumer of the same sample (cgroup metrics, energy, GPU map,
/// perf, ...).
struct UnitSnapshot {
  std::string manager;  ///< value of the label `manager`: "slurm", "cgroup", ...
  Clock::SteadyTime taken{};
  Clock::SystemTime wall{};
  std::vector<Unit> units;
};

}  // namespace ceems::exporter
