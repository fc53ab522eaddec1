#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "exporter/unit/stat/kept_file.h"
#include "exporter/unit/unit.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/mount.h"
#include "host/paths.h"

namespace ceems::exporter {

/// How values are read where there is a choice.
enum class StatFlavour {
  /// As the reference does for SLURM: CPUs from the cpuset alone; limits as in the files; and, with
  /// v1, block I/O of the unit's own cgroup.
  kReference,
  /// For cgroups without a resource manager: CPUs are the minimum of cpuset, quota and the
  /// machine's, unlimited memory is the machine's, and with v1 block I/O is that of the whole
  /// subtree.
  kGeneric,
};

/// Where the number of CPUs of a unit comes from.
enum class CpuSource {
  kCpuset,  ///< as StatFlavour says
  kVcpus,   ///< libvirt: the cgroups vcpuN in it, or in `libvirt` below it (systemd, v2)
  kShares,  ///< Kubernetes: cpu.shares, or cpu.weight turned into shares; 1024 shares are one CPU
};

/// CPUs for a value of cpu.shares, in steps of 1/1000, and for one of cpu.weight. Container
/// runtimes derive the weight from shares (KEP-2254): shares = (weight - 1) * 262142 / 9999 + 2.
double cpus_of_shares(std::uint64_t shares);
double cpus_of_weight(std::uint64_t weight);

/// What to read of each unit besides CPU, memory and RDMA.
struct StatOptions {
  bool swap = false;
  bool pressure = false;
  bool block_io = false;
  StatFlavour flavour = StatFlavour::kReference;
  CpuSource cpus = CpuSource::kCpuset;
};

/// What a reading of a unit's statistics can leave out because it is known.
struct StatScope {
  enum class Cpu {
    kAll,
    kDivision,  ///< how they divide into user and system time: read_cpu() was called just before
    kKnown,     ///< nothing ran since the last reading
  };
  bool look_again = true;  ///< also read files that did not exist before
  Cpu cpu = Cpu::kAll;     ///< the CPU times
  bool limits = true;      ///< configured values: CPUs, and limits of memory
};

/// The statistics files of one unit.
struct UnitFiles {
  static constexpr std::size_t kCount = 23;
  std::array<KeptFile, kCount> files;
  std::uint32_t absent = 0;  ///< one bit per file that did not exist at the last attempt
  std::string cpu_list;      ///< text of the cpuset
  std::shared_ptr<const std::vector<int>> cpu_set;  ///< the CPUs in it
  bool own_cpus = false;  ///< it was set for this cgroup and not inherited
};

/// Reads the statistics of one manager's units, whose paths are relative to the hierarchies.
/// Descriptors of the hierarchies stay open. Not thread-safe.
class StatReader {
 public:
  /// `active` is the directory of the v1 hierarchy whose cgroup.procs files are used; unused with
  /// v2.
  StatReader(const host::Paths& paths,
             host::CgroupMount mount,
             const std::string& active,
             StatOptions options,
             std::size_t kept_files);

  /// Call before the reads of a sample.
  void begin_sample(Clock::SteadyTime now);

  /// Reads the statistics of the unit at `path`. What `scope` leaves out stays as it is. Errors
  /// leave `stats` unchanged: kNotFound if the cgroup is gone, otherwise the file and its fault.
  Result<> read(UnitFiles& files, const std::string& path, StatScope scope, UnitStats& stats);
  /// Reads the CPU times only: with v1 in a real cgroup just UnitStats::cpu_total_seconds.
  Result<> read_cpu(UnitFiles& files, const std::string& path, UnitStats& stats);
  /// Memory that is charged to the unit, file cache included, and the part that is not file cache.
  std::optional<std::uint64_t> memory_charged(UnitFiles& files, const std::string& path);
  std::optional<std::uint64_t> memory_held(UnitFiles& files, const std::string& path);
  /// Bytes of block I/O of the unit. Nothing where the kernel does not count them.
  std::optional<double> io_bytes(UnitFiles& files, const std::string& path);
  /// Time in which at least one process waited for I/O, from io.pressure. Nothing with v1.
  std::optional<double> io_stalled_seconds(UnitFiles& files, const std::string& path);
  /// CPU-seconds of everything that ran in the cgroup at `path` or below it since it was created,
  /// including cgroups that have been removed. Nothing if it is gone or does not count.
  std::optional<double> subtree_seconds(KeptFile& file, const std::string& path);
  /// Whether a process lives in the subtree, from cgroup.events. Nothing with v1.
  std::optional<bool> populated(UnitFiles& files, const std::string& path);
  /// Descriptor of an open cgroup.events for poll(); -1 with v1.
  [[nodiscard]] int events_fd(const UnitFiles& files) const;
  /// Content of cgroup.procs of the unit itself.
  FileText processes(UnitFiles& files, const std::string& path);

  /// Content of cgroup.procs, or of any other file, of a cgroup in the hierarchy that is walked.
  FileText read_active(KeptFile& file, const std::string& path, std::string_view name);
  /// Descriptor of that hierarchy's root; -1 if it does not exist.
  [[nodiscard]] int active_fd() const { return roots_.at(0).get(); }
  /// Its directory.
  [[nodiscard]] std::string active_path() const { return active_path_.string(); }
  /// CPUs of the machine that are online; 0 if unknown.
  [[nodiscard]] double host_cpus() const { return host_cpus_; }
  FdBudget& budget() { return budget_; }
  TextBuffer& buffer() { return buffer_; }

 private:
  enum class File : std::size_t;
  struct FileSpec;
  [[nodiscard]] const FileSpec& spec_of(File file) const;
  [[nodiscard]] bool generic() const { return options_.flavour == StatFlavour::kGeneric; }

  FileText text_of(UnitFiles& files, File file, const std::string& path, bool look_again);
  [[nodiscard]] std::uint64_t value_of(const FileText& text) const;
  Result<> read_cpu_into(UnitFiles& files, const std::string& path, bool again, UnitStats& stats);
  Result<bool> read_v1_usage(UnitFiles& files,
                             const std::string& path,
                             bool again,
                             UnitStats& stats);
  Result<> read_cpu_times(UnitFiles& files,
                          const std::string& path,
                          StatScope scope,
                          UnitStats& stats);
  Result<> read_v1(UnitFiles& files, const std::string& path, StatScope scope, UnitStats& stats);
  Result<> read_v1_memory(UnitFiles& files,
                          const std::string& path,
                          StatScope scope,
                          UnitStats& stats);
  Result<> read_v1_block_io(UnitFiles& files,
                            const std::string& path,
                            bool again,
                            UnitStats& stats);
  Result<bool> read_blkio_file(
      UnitFiles& files, File file, const std::string& path, bool again, UnitStats& stats);
  Result<> read_v2(UnitFiles& files, const std::string& path, StatScope scope, UnitStats& stats);
  void read_cpus(UnitFiles& files, const std::string& path, bool again, UnitStats& stats);
  void read_cpuset(UnitFiles& files, const std::string& path, bool again, UnitStats& stats);
  void take_cpu_list(UnitFiles& files, const std::string& path, bool again, std::string_view list);
  std::optional<double> read_quota(UnitFiles& files, const std::string& path, bool again);
  bool inherits_cpus(UnitFiles& files, const std::string& path, std::string_view list);
  double read_shares(UnitFiles& files, const std::string& path, bool again);
  [[nodiscard]] double count_vcpus(const std::string& path) const;
  void set_memory_limit(double limit, UnitStats& stats) const;
  BlockIo& block_io_of(UnitStats& stats, std::uint32_t major, std::uint32_t minor);
  void read_block_devices();

  host::Paths paths_;
  host::CgroupMount mount_;
  StatOptions options_;
  FdBudget budget_;
  TextBuffer buffer_;
  std::filesystem::path active_path_;
  std::array<UniqueFd, 7> roots_;  // [0]: the walked hierarchy; the rest: v1 subsystems
  host::MemoryTotals totals_;
  double host_cpus_ = 0;
  host::BlockDevices devices_;
  Clock::SteadyTime now_{};
  std::optional<Clock::SteadyTime> devices_read_;
  std::string path_;  // reused for file names
};

}  // namespace ceems::exporter
