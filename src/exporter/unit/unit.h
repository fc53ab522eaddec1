#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

/// The content of a unit's cgroup files. docs/exporter/metrics.md lists the metrics made of it.
/// Values of missing files are 0.
struct UnitStats {
  double cpu_user_seconds = 0;
  double cpu_system_seconds = 0;
  /// User and system time from a file that counts finer than in ticks; 0 where there is none. It is
  /// read more often than the two above.
  double cpu_total_seconds = 0;
  double cpus = 0;  ///< CPUs as the metric shows them: from the cpuset where there is one
  /// CPUs that are reserved for this unit by its own cpuset, its quota or its manager; 0 if there
  /// is no such limit. It then claims idle power only by what it uses.
  double reserved_cpus = 0;
  /// False if memory_total_bytes is only the memory that the machine has.
  bool memory_reserved = true;
  /// CPUs on which it may run, ascending; null if that is any CPU, or not known.
  std::shared_ptr<const std::vector<int>> cpu_set;
  double cpu_psi_seconds = 0;
  std::uint64_t memory_rss_bytes = 0;
  std::uint64_t memory_cache_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  double memory_total_bytes = 0;  ///< the limit; the host's memory if there is none
  std::uint64_t memory_inactive_file_bytes = 0;
  std::optional<std::uint64_t> memory_shmem_bytes = {};
  /// Anonymous, shared and kernel memory: what the unit needs, without file cache.
  std::uint64_t memory_held_bytes = 0;
  std::uint64_t memory_fail_count = 0;
  std::uint64_t memsw_used_bytes = 0;
  double memsw_total_bytes = 0;
  std::uint64_t memsw_fail_count = 0;
  double memory_psi_seconds = 0;
  /// Time in which at least one process waited for I/O. Only v2 counts it.
  std::optional<double> io_stalled_seconds = {};
  std::vector<BlockIo> block_io;
  std::vector<RdmaUse> rdma;
  /// A file exists but is unreadable or malformed. The values are then the last good ones, or 0.
  bool error = false;

  /// Keeps only what counts up.
  void forget_levels();
  /// Adds the use of another directory of the same unit. Limits and the CPU set stay.
  void add(const UnitStats& other);

  [[nodiscard]] double cpu_seconds() const {
    return cpu_total_seconds > 0 ? cpu_total_seconds : cpu_user_seconds + cpu_system_seconds;
  }
};

/// A compute unit of this node: SLURM job, VM, pod, or any cgroup that a pattern names.
struct Unit {
  std::string id;              ///< identifier in the cgroup path
  std::string uuid;            ///< identifier shown to users; equals id except for libvirt
  std::string cgrouphostname;  ///< virtual node name (several slurmd on one host), else empty
  std::string name;            ///< last component of the path, printable
  std::string path;            ///< relative to the hierarchy root, as on disk, with leading '/'
  /// Inode of its directory, which is how the kernel numbers cgroups; 0 if unknown. With v1 it is
  /// that of the hierarchy of UnitSource::controller().
  std::uint64_t cgroup_id = 0;
  std::int64_t owner_uid = -1;  ///< owner of its processes; -1 if unknown or not looked up
  /// Live processes of the whole subtree, and the relative paths of all its cgroups including its
  /// own. Empty until a consumer requests them (UnitSource::want_processes).
  std::vector<int> pids;
  std::vector<std::string> children;
  UnitStats stats;
  Clock::SystemTime started{};    ///< creation of its cgroup; the epoch if unknown
  Clock::SystemTime last_seen{};  ///< when it was last seen alive; end time of an ended unit
  bool ended = false;             ///< it ended since an earlier snapshot; stats are final
};

/// Adds the processes, cgroups and use of another directory of the same unit.
void add_part(Unit& unit, const Unit& part);

/// All units of one manager at one time. No two have the same (cgrouphostname, uuid). Immutable
/// once published and shared by all consumers of the sample (cgroup metrics, energy, GPU map, perf,
/// ...).
struct UnitSnapshot {
  std::string manager;  ///< value of the label `manager`: "slurm", "cgroup", ...
  Clock::SteadyTime taken{};
  Clock::SystemTime wall{};
  std::vector<Unit> units;
};

}  // namespace ceems::exporter
