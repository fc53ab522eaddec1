#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/ebpf/layout.h"
#include "exporter/ebpf/tables.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter::ebpf {

/// How a mount is called on the page.
struct MountLabel {
  std::string text;
  std::string type;  ///< of the file system: "lustre", "nfs4", "ext4", ...

  friend auto operator<=>(const MountLabel&, const MountLabel&) = default;
};

/// The name of a mount in its own mount namespace. By default it is made of the last name of each
/// mount point, as the reference does: /lustre/scratch on the root file system is "/scratch"; at
/// most 64 bytes. With `full_path` it is the whole path. Bytes that are not printable are escaped.
MountLabel mount_label(const ebpf_place& place, bool full_path);

/// Traffic of a unit is counted by these.
struct TrafficKind {
  std::uint16_t protocol = 0;  ///< 6 or 17
  std::uint16_t family = 0;    ///< 2 or 10
  std::uint32_t network_class = 0;

  friend auto operator<=>(const TrafficKind&, const TrafficKind&) = default;
};

struct FileCounts {
  ebpf_file_value io{};
  ebpf_file_time time{};
};

/// What a unit did since it was found. Nothing in it ever decreases.
struct UnitCounts {
  std::map<std::string, FileCounts> files = {};  ///< by text of the mount's label
  std::optional<ebpf_name_value> names = {};
  std::map<TrafficKind, ebpf_traffic_value> traffic = {};
};

/// How long operations on one mount took, on the whole node.
struct MountLatency {
  MountLabel mount;
  std::uint32_t operation = 0;  ///< enum ebpf_operation

  friend auto operator<=>(const MountLatency&, const MountLatency&) = default;
};

/// The counts of all managers on one page.
struct CountsPage {
  std::map<std::string, UnitCounts> units = {};  ///< of one manager, by uuid
  std::map<MountLatency, ebpf_latency_value> latencies = {};
  ebpf_lost lost{};
  std::uint64_t skipped = 0;
};

/// Assigns what the programs counted for cgroups to units. A cgroup belongs to the unit whose
/// cgroup it is or is below of, so units need not be watched for new cgroups, and what a cgroup
/// did stays with its unit when it is gone. Rows that no longer change are deleted in the kernel,
/// and so are cgroups without rows, so that its tables have room for the next jobs.
/// Shared by the collectors of all managers. Safe for concurrent use.
class Counts {
 public:
  /// A row that has not changed for so long is deleted in the kernel: quickly if its counts have
  /// been assigned, otherwise when no manager has claimed it.
  static constexpr auto kKeepAssigned = std::chrono::minutes(1);
  static constexpr auto kKeepUnclaimed = std::chrono::minutes(10);
  /// Collectors of the same scrape share one reading, but none gets the same one twice.
  static constexpr auto kSharedAge = std::chrono::milliseconds(500);

  /// `full_paths`: names of mounts are whole paths. The clock must outlive this object.
  Counts(std::unique_ptr<Tables> tables, bool full_paths, const Clock& clock);

  /// Takes note of one manager's units, reads the tables and returns its page. Errors: as
  /// Tables::read().
  Result<CountsPage> page(const UnitSnapshot& snapshot);

 private:
  /// A row of a table, and how much of it has been assigned to units.
  template <class Value>
  struct Row {
    Value assigned{};
    Value last{};
    Clock::SteadyTime changed{};
    bool claimed = false;  ///< all of it has been assigned
  };
  struct FileRow : Row<ebpf_file_value> {
    std::optional<MountLabel> label;
  };
  /// A manager's unit. `settled` is the traffic of connections that have ended; the counts show
  /// it with that of open ones.
  struct Unit {
    UnitCounts counts;
    std::map<TrafficKind, ebpf_traffic_value> settled;
    std::map<TrafficKind, ebpf_traffic_value> open;
  };
  struct Manager {
    std::map<std::string, Unit> units;                       // by uuid
    std::unordered_map<std::uint64_t, std::string> cgroups;  // uuid by id
  };
  using Owners = std::vector<Unit*>;

  struct LessBytes {
    template <class Key>
    bool operator()(const Key& a, const Key& b) const;
  };
  template <class Key, class Value>
  using Known = std::map<Key, Value, LessBytes>;

  void note_units(const UnitSnapshot& snapshot) CEEMS_REQUIRES(mutex_);
  void assign() CEEMS_REQUIRES(mutex_);
  void assign_files() CEEMS_REQUIRES(mutex_);
  void assign_names() CEEMS_REQUIRES(mutex_);
  void assign_traffic() CEEMS_REQUIRES(mutex_);
  void assign_latencies() CEEMS_REQUIRES(mutex_);
  void forget_cgroups() CEEMS_REQUIRES(mutex_);
  const Owners& owners_of(std::uint64_t cgroup) CEEMS_REQUIRES(mutex_);
  const MountLabel& label_of(const ebpf_file_key& key) CEEMS_REQUIRES(mutex_);
  template <class Value, class Use>
  void assign_row(Row<Value>& row, const Value& now, bool claimed, const Use& use)
      CEEMS_REQUIRES(mutex_);
  template <class Key, class RowOfKey, class Forget>
  void forget_idle(Known<Key, RowOfKey>& rows, const Forget& forget) CEEMS_REQUIRES(mutex_);

  const bool full_paths_;
  const Clock& clock_;
  Mutex mutex_;
  const std::unique_ptr<Tables> tables_ CEEMS_GUARDED_BY(mutex_);
  Readings readings_ CEEMS_GUARDED_BY(mutex_);
  std::optional<Clock::SteadyTime> read_ CEEMS_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> served_ CEEMS_GUARDED_BY(mutex_);  // with this reading
  std::map<std::string, Manager> managers_ CEEMS_GUARDED_BY(mutex_);
  // Chains of ids above a cgroup, which never change, and the owners in the current assignment.
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> above_ CEEMS_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Owners> owners_ CEEMS_GUARDED_BY(mutex_);
  // Cgroups in the kernel's table that no row was of when they were last looked through.
  std::set<std::uint64_t> unused_ CEEMS_GUARDED_BY(mutex_);
  std::optional<Clock::SteadyTime> looked_through_ CEEMS_GUARDED_BY(mutex_);
  Known<ebpf_file_key, FileRow> files_ CEEMS_GUARDED_BY(mutex_);
  Known<ebpf_file_key, Row<ebpf_file_time>> file_times_ CEEMS_GUARDED_BY(mutex_);
  Known<std::uint64_t, Row<ebpf_name_value>> names_ CEEMS_GUARDED_BY(mutex_);
  Known<ebpf_traffic_key, Row<ebpf_traffic_value>> traffic_ CEEMS_GUARDED_BY(mutex_);
  Known<ebpf_latency_key, Row<ebpf_latency_value>> latency_rows_ CEEMS_GUARDED_BY(mutex_);
  Known<ebpf_latency_key, MountLabel> mounts_ CEEMS_GUARDED_BY(mutex_);  // operation 0
  std::map<MountLatency, ebpf_latency_value> latencies_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::exporter::ebpf
