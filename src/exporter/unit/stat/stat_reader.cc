#include "exporter/unit/stat/stat_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/unit/cgroup_tree.h"
#include "exporter/unit/stat/stat_files.h"
#include "host/cgroup/process.h"
#include "host/cpu_topology.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

using host::CgroupMode;

constexpr double kTicksPerSecond = 100;  // USER_HZ, the same on every architecture
constexpr auto kDevicesAge = std::chrono::seconds(10);

UniqueFd open_directory(const std::filesystem::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

std::optional<Error> fault_of(const FileText& text, std::string_view path, std::string_view name) {
  if (text.ok() || text.absent()) {
    return std::nullopt;
  }
  if (text.vanished()) {
    return Error{ErrorCode::kNotFound, "the cgroup is gone"};
  }
  return errno_error(text.error, fmt::format("read {}/{}", printable(path), name));
}

Error malformed(Error error, std::string_view path, std::string_view name) {
  return std::move(error).with_context(fmt::format("{}/{}", printable(path), name));
}

const StatReader::FileSpec& StatReader::spec_of(File file) const {
  static constexpr std::array<FileSpec, UnitFiles::kCount> kV1 = {{
      {Root::kActive, nullptr},
      {Root::kActive, "cgroup.procs"},
      {Root::kCpuacct, "cpuacct.stat"},
      {Root::kCpuset, "cpuset.cpus"},
      {Root::kCpu, "cpu.cfs_quota_us"},
      {Root::kCpu, "cpu.cfs_period_us"},
      {Root::kMemory, "memory.stat"},
      {Root::kMemory, "memory.usage_in_bytes"},
      {Root::kMemory, "memory.limit_in_bytes"},
      {Root::kMemory, "memory.failcnt"},
      {Root::kMemory, "memory.memsw.usage_in_bytes"},
      {Root::kMemory, "memory.memsw.limit_in_bytes"},
      {Root::kMemory, "memory.memsw.failcnt"},
      {Root::kRdma, "rdma.current"},
      {Root::kBlkio, "blkio.throttle.io_service_bytes"},
      {Root::kBlkio, "blkio.throttle.io_serviced"},
      {Root::kBlkio, "blkio.io_service_bytes_recursive"},
      {Root::kBlkio, "blkio.io_serviced_recursive"},
      {Root::kBlkio, "blkio.throttle.io_service_bytes_recursive"},
      {Root::kBlkio, "blkio.throttle.io_serviced_recursive"},
      {Root::kActive, nullptr},
      {Root::kCpuacct, "cpuacct.usage"},
      {Root::kActive, nullptr},
  }};
  static constexpr std::array<FileSpec, UnitFiles::kCount> kV2 = {{
      {Root::kActive, "cgroup.events"},
      {Root::kActive, "cgroup.procs"},
      {Root::kActive, "cpu.stat"},
      {Root::kActive, "cpuset.cpus.effective"},
      {Root::kActive, "cpu.max"},
      {Root::kActive, "cpu.pressure"},
      {Root::kActive, "memory.stat"},
      {Root::kActive, "memory.current"},
      {Root::kActive, "memory.max"},
      {Root::kActive, "memory.events"},
      {Root::kActive, "memory.swap.current"},
      {Root::kActive, "memory.swap.max"},
      {Root::kActive, "memory.pressure"},
      {Root::kActive, "rdma.current"},
      {Root::kActive, "io.stat"},
      {Root::kActive, nullptr},
      {Root::kActive, nullptr},
      {Root::kActive, nullptr},
      {Root::kActive, nullptr},
      {Root::kActive, nullptr},
      {Root::kActive, "cpuset.cpus"},
      {Root::kActive, nullptr},
      {Root::kActive, "io.pressure"},
  }};
  if (options_.cpus == CpuSource::kShares && file == File::kCpus) {
    static constexpr FileSpec kShares{Root::kActive, "cpu.shares"};
    static constexpr FileSpec kWeight{Root::kActive, "cpu.weight"};
    return mount_.mode == CgroupMode::kUnified ? kWeight : kShares;
  }
  if (options_.cpus == CpuSource::kShares && file == File::kCpuQuota) {
    // The hierarchy that is walked need not be that of the CPU controller.
    static constexpr FileSpec kShares{Root::kCpu, "cpu.shares"};
    static constexpr FileSpec kNone{Root::kActive, nullptr};
    return mount_.mode == CgroupMode::kUnified ? kNone : kShares;
  }
  const auto index = static_cast<std::size_t>(file);
  return mount_.mode == CgroupMode::kUnified ? kV2.at(index) : kV1.at(index);
}

double cpus_of_shares(std::uint64_t shares) {
  // MIN_SHARES and MAX_SHARES of kernel/sched/sched.h. Milli-CPUs are integers.
  shares = std::clamp<std::uint64_t>(shares, 2, 262144);
  const std::uint64_t milli = shares * 1000 / 1024;
  return static_cast<double>(milli) / 1000;
}

double cpus_of_weight(std::uint64_t weight) {
  weight = std::clamp<std::uint64_t>(weight, 1, 10000);
  return cpus_of_shares((weight - 1) * 262142 / 9999 + 2);
}

StatReader::StatReader(const host::Paths& paths,
                       host::CgroupMount mount,
                       const std::string& active,
                       StatOptions options,
                       std::size_t kept_files)
    : paths_(paths), mount_(mount), options_(options), budget_(kept_files) {
  if (mount_.mode == CgroupMode::kUnified) {
    active_path_ = paths_.cgroup;
    roots_.at(0) = open_directory(active_path_);
  } else {
    constexpr std::array<std::string_view, 7> kSubsystems = {"",       "cpuacct", "cpu", "cpuset",
                                                             "memory", "blkio",   "rdma"};
    active_path_ = paths_.cgroup / active;
    roots_.at(0) = open_directory(active_path_);
    for (std::size_t i = 1; i < kSubsystems.size(); ++i) {
      if (const auto name = host::find_v1_hierarchy(paths_.cgroup, kSubsystems.at(i), false)) {
        roots_.at(i) = open_directory(paths_.cgroup / *name);
      }
    }
  }
  if (const auto text = host::read_file((paths_.proc / "meminfo").string())) {
    totals_ = host::parse_memory_totals(*text);
  }
  if (const auto text = host::read_file((paths_.sys / "devices/system/cpu/online").string())) {
    host_cpus_ = static_cast<double>(host::count_cpu_list(*text).value_or(0));
  }
}

void StatReader::begin_sample(Clock::SteadyTime now) {
  now_ = now;
}

FileText StatReader::text_of(UnitFiles& files,
                             File file,
                             const std::string& path,
                             bool look_again) {
  const auto index = static_cast<std::size_t>(file);
  const std::uint32_t bit = 1U << index;
  KeptFile& kept = files.files.at(index);
  if ((files.absent & bit) != 0 && !look_again) {
    return {.text = {}, .error = ENOENT};
  }
  int directory = -1;
  if (kept.needs_path()) {
    const FileSpec& spec = spec_of(file);
    directory = roots_.at(static_cast<std::size_t>(spec.root)).get();
    if (spec.name == nullptr || directory < 0) {
      files.absent |= bit;
      return {.text = {}, .error = ENOENT};
    }
    // Relative to the root, so without the leading '/'.
    path_.assign(path, std::min<std::size_t>(1, path.size()));
    path_ += path_.empty() ? "" : "/";
    path_ += spec.name;
  }
  const FileText text = kept.read(directory, path_.c_str(), buffer_, budget_);
  files.absent = text.absent() ? files.absent | bit : files.absent & ~bit;
  return text;
}

FileText StatReader::read_active(KeptFile& file, const std::string& path, std::string_view name) {
  if (file.needs_path()) {
    path_.assign(path, std::min<std::size_t>(1, path.size()));
    path_ += path_.empty() ? "" : "/";
    path_ += name;
  }
  return file.read(active_fd(), path_.c_str(), buffer_, budget_);
}

FileText StatReader::processes(UnitFiles& files, const std::string& path) {
  const FileText text = text_of(files, File::kProcs, path, false);
  if (mount_.mode == CgroupMode::kLegacy) {
    // v1 caches the list of an open file for a second, and each read extends that time
    // (kernel/cgroup/cgroup-v1.c, cgroup_pidlist_start). If read more often, the list would never
    // change.
    files.files.at(static_cast<std::size_t>(File::kProcs)).close();
  }
  return text;
}

std::optional<bool> StatReader::populated(UnitFiles& files, const std::string& path) {
  const FileText text = text_of(files, File::kEvents, path, false);
  return text.ok() ? host::parse_populated(text.text) : std::nullopt;
}

int StatReader::events_fd(const UnitFiles& files) const {
  return mount_.mode == CgroupMode::kUnified
             ? files.files.at(static_cast<std::size_t>(File::kEvents)).fd()
             : -1;
}

// Single values that cannot be read or are not a number count as 0, as in the reference. v1 has no
// "max".
std::uint64_t StatReader::value_of(const FileText& text) const {
  const std::uint64_t value = text.ok() ? host::parse_cgroup_value(text.text).value_or(0) : 0;
  return value == host::kCgroupMax && mount_.mode == CgroupMode::kLegacy ? 0 : value;
}

Result<> StatReader::read_cpu_into(UnitFiles& files,
                                   const std::string& path,
                                   bool again,
                                   UnitStats& stats) {
  const char* const name = spec_of(File::kCpuStat).name;
  const FileText text = text_of(files, File::kCpuStat, path, again);
  if (auto fault = fault_of(text, path, name)) {
    return fail(*std::move(fault));
  }
  if (!text.ok()) {
    return {};
  }
  if (mount_.mode == CgroupMode::kUnified) {
    auto stat = host::parse_cgroup_cpu_stat(text.text);
    if (!stat) {
      return fail(malformed(std::move(stat).error(), path, name));
    }
    stats.cpu_user_seconds = static_cast<double>(stat->user_usec) / kMicroseconds;
    stats.cpu_system_seconds = static_cast<double>(stat->system_usec) / kMicroseconds;
    stats.cpu_total_seconds =
        mount_.live ? static_cast<double>(stat->usage_usec) / kMicroseconds : 0;
  } else {
    auto stat = host::parse_cpuacct_stat(text.text);
    if (!stat) {
      return fail(malformed(std::move(stat).error(), path, name));
    }
    stats.cpu_user_seconds = static_cast<double>(stat->user_ticks) / kTicksPerSecond;
    stats.cpu_system_seconds = static_cast<double>(stat->system_ticks) / kTicksPerSecond;
  }
  return {};
}

// Returns whether the file exists. Only the kernel's own file is used: a tree of plain files may
// hold one that does not go with cpuacct.stat.
Result<bool> StatReader::read_v1_usage(UnitFiles& files,
                                       const std::string& path,
                                       bool again,
                                       UnitStats& stats) {
  if (mount_.mode != CgroupMode::kLegacy || !mount_.live) {
    return false;
  }
  const char* const name = spec_of(File::kCpuUsage).name;
  const FileText text = text_of(files, File::kCpuUsage, path, again);
  if (auto fault = fault_of(text, path, name)) {
    return fail(*std::move(fault));
  }
  if (!text.ok()) {
    return false;
  }
  auto value = host::parse_cgroup_value(text.text);
  if (!value) {
    return fail(malformed(std::move(value).error(), path, name));
  }
  stats.cpu_total_seconds = static_cast<double>(*value) / kNanoseconds;
  return true;
}

Result<> StatReader::read_cpu(UnitFiles& files, const std::string& path, UnitStats& stats) {
  CEEMS_TRY(usage, read_v1_usage(files, path, false, stats));
  return usage ? Result<>{} : read_cpu_into(files, path, false, stats);
}

std::optional<double> StatReader::subtree_seconds(KeptFile& file, const std::string& path) {
  const bool unified = mount_.mode == CgroupMode::kUnified;
  if (file.needs_path()) {
    path_.assign(path, std::min<std::size_t>(1, path.size()));
    path_ += path_.empty() ? "" : "/";
    path_ += unified ? "cpu.stat" : spec_of(File::kCpuUsage).name;
  }
  const auto root = static_cast<std::size_t>(unified ? Root::kActive : Root::kCpuacct);
  const FileText text = file.read(roots_.at(root).get(), path_.c_str(), buffer_, budget_);
  if (!text.ok()) {
    file.close();
    return std::nullopt;
  }
  if (unified) {
    const auto stat = host::parse_cgroup_cpu_stat(text.text);
    return stat ? std::optional(static_cast<double>(stat->usage_usec) / kMicroseconds)
                : std::nullopt;
  }
  const auto value = host::parse_cgroup_value(text.text);
  return value ? std::optional(static_cast<double>(*value) / kNanoseconds) : std::nullopt;
}

Result<> StatReader::read_cpu_times(UnitFiles& files,
                                    const std::string& path,
                                    StatScope scope,
                                    UnitStats& stats) {
  const bool unified = mount_.mode == CgroupMode::kUnified;
  const bool known =
      scope.cpu == StatScope::Cpu::kKnown || (unified && scope.cpu == StatScope::Cpu::kDivision);
  if (known) {
    return {};
  }
  auto done = read_cpu_into(files, path, scope.look_again, stats);
  if (done && scope.cpu == StatScope::Cpu::kAll) {
    CEEMS_TRY(read_v1_usage(files, path, scope.look_again, stats));
  }
  return done;
}

Result<> StatReader::read(UnitFiles& files,
                          const std::string& path,
                          StatScope scope,
                          UnitStats& stats) {
  UnitStats fresh;
  fresh.block_io.reserve(stats.block_io.size());
  fresh.cpu_user_seconds = stats.cpu_user_seconds;
  fresh.cpu_system_seconds = stats.cpu_system_seconds;
  fresh.cpu_total_seconds = stats.cpu_total_seconds;
  fresh.cpus = stats.cpus;
  if (!scope.limits) {
    fresh.reserved_cpus = stats.reserved_cpus;
    fresh.cpu_set = stats.cpu_set;
    fresh.memory_reserved = stats.memory_reserved;
    fresh.memory_total_bytes = stats.memory_total_bytes;
    fresh.memsw_total_bytes = stats.memsw_total_bytes;
  }
  auto done = read_cpu_times(files, path, scope, fresh);
  if (done) {
    done = mount_.mode == CgroupMode::kUnified ? read_v2(files, path, scope, fresh)
                                               : read_v1(files, path, scope, fresh);
  }
  if (!done) {
    return done;
  }
  if (scope.limits) {
    read_cpus(files, path, scope.look_again, fresh);
  }
  if (const FileText text = text_of(files, File::kRdma, path, scope.look_again); text.ok()) {
    for (auto& use : host::parse_rdma(text.text)) {
      fresh.rdma.push_back({std::move(use.device), use.hca_handles, use.hca_objects});
    }
  }
  stats = std::move(fresh);
  return {};
}

// `stats.cpus` holds the result of the last reading.
void StatReader::read_cpus(UnitFiles& files,
                           const std::string& path,
                           bool again,
                           UnitStats& stats) {
  switch (options_.cpus) {
    case CpuSource::kCpuset:
      read_cpuset(files, path, again, stats);
      return;
    case CpuSource::kShares:
      stats.cpus = read_shares(files, path, again);
      break;
    case CpuSource::kVcpus:
      if (again || stats.cpus == 0) {
        stats.cpus = count_vcpus(path);
      }
      break;
  }
  stats.reserved_cpus = stats.cpus;
}

double StatReader::read_shares(UnitFiles& files, const std::string& path, bool again) {
  FileText text = text_of(files, File::kCpus, path, again);
  if (!text.ok()) {
    text = text_of(files, File::kCpuQuota, path, again);
  }
  const auto value = text.ok() ? host::parse_cgroup_value(text.text)
                               : Result<std::uint64_t>(fail(ErrorCode::kNoData, "no shares"));
  if (!value) {
    return 0;
  }
  return mount_.mode == CgroupMode::kUnified ? cpus_of_weight(*value) : cpus_of_shares(*value);
}

double StatReader::count_vcpus(const std::string& path) const {
  for (const std::string_view below : {"/libvirt", ""}) {
    const std::string directory = path + std::string(below);
    int count = 0;
    for_each_cgroup(
        active_fd(), directory,
        [&](const std::string& cgroup) {
          const std::string_view name = std::string_view(cgroup).substr(cgroup.rfind('/') + 1);
          count += cgroup.size() > directory.size() && name.starts_with("vcpu") ? 1 : 0;
          return true;
        },
        1);
    if (count > 0) {
      return count;
    }
  }
  return 0;
}

/// Without a cpuset of its own, a cgroup of v2 shows that of its parent in cpuset.cpus.effective,
/// and its cpuset.cpus is empty (Documentation/admin-guide/cgroup-v2.rst). Where that file is
/// missing, as in copied trees, the parent's list tells.
bool StatReader::inherits_cpus(UnitFiles& files, const std::string& path, std::string_view list) {
  if (mount_.mode == CgroupMode::kLegacy) {
    return false;  // SLURM makes no cpuset for a job that it does not confine
  }
  if (const FileText own = text_of(files, File::kOwnCpus, path, true); own.ok()) {
    return trim(own.text).empty();
  }
  KeptFile parent;
  const FileText above =
      read_active(parent, path.substr(0, path.rfind('/')), "cpuset.cpus.effective");
  parent.close();
  return above.ok() && trim(above.text) == trim(list);
}

void StatReader::take_cpu_list(UnitFiles& files,
                               const std::string& path,
                               bool again,
                               std::string_view list) {
  // A resource manager may set the cpuset a moment after it made the cgroup.
  const bool settled = files.own_cpus || list.empty() || !again;
  if (list == files.cpu_list && settled) {
    return;
  }
  files.cpu_list = list;
  auto cpus = host::parse_cpu_list(list);
  files.cpu_set =
      cpus && !cpus->empty() ? std::make_shared<const std::vector<int>>(*std::move(cpus)) : nullptr;
  files.own_cpus = files.cpu_set != nullptr && !inherits_cpus(files, path, files.cpu_list);
}

std::optional<double> StatReader::read_quota(UnitFiles& files,
                                             const std::string& path,
                                             bool again) {
  if (mount_.mode == CgroupMode::kUnified) {
    const FileText text = text_of(files, File::kCpuQuota, path, again);
    return text.ok() ? host::parse_cpu_max(text.text) : std::nullopt;
  }
  // -1, which means no limit, reads as 0.
  const auto allowed = static_cast<double>(value_of(text_of(files, File::kCpuQuota, path, again)));
  const auto period = static_cast<double>(value_of(text_of(files, File::kCpuPeriod, path, again)));
  return allowed > 0 && period > 0 ? std::optional(allowed / period) : std::nullopt;
}

void StatReader::read_cpuset(UnitFiles& files,
                             const std::string& path,
                             bool again,
                             UnitStats& stats) {
  const FileText cpuset = text_of(files, File::kCpus, path, again);
  take_cpu_list(files, path, again, cpuset.ok() ? cpuset.text : std::string_view{});
  stats.cpu_set = files.cpu_set;
  stats.cpus = files.cpu_set != nullptr ? static_cast<double>(files.cpu_set->size()) : 0;
  const std::optional<double> quota = read_quota(files, path, again);
  stats.reserved_cpus = files.own_cpus ? stats.cpus : 0;
  if (quota && (stats.reserved_cpus == 0 || *quota < stats.reserved_cpus)) {
    stats.reserved_cpus = *quota;
  }
  if (!generic()) {
    return;
  }
  if (stats.cpus == 0) {
    stats.cpus = host_cpus_;
  }
  if (quota && (stats.cpus == 0 || *quota < stats.cpus)) {
    stats.cpus = *quota;
  }
  if (host_cpus_ > 0 && stats.reserved_cpus >= host_cpus_) {
    stats.reserved_cpus = 0;
  }
}

void StatReader::set_memory_limit(double limit, UnitStats& stats) const {
  const auto host_bytes = static_cast<double>(totals_.memory_bytes);
  stats.memory_reserved = limit > 0 && (host_bytes == 0 || limit < host_bytes);
  // In the generic flavour: no limit if the memory controller is off.
  stats.memory_total_bytes =
      generic() && host_bytes > 0 && !stats.memory_reserved ? host_bytes : limit;
}

BlockIo& StatReader::block_io_of(UnitStats& stats, std::uint32_t major, std::uint32_t minor) {
  auto known = devices_.find({major, minor});
  if (known == devices_.end() && (!devices_read_ || now_ - *devices_read_ > kDevicesAge)) {
    read_block_devices();
    known = devices_.find({major, minor});
  }
  std::string name = known != devices_.end() ? known->second : fmt::format("{}:{}", major, minor);
  const auto same = std::find_if(stats.block_io.begin(), stats.block_io.end(),
                                 [&name](const BlockIo& io) { return io.device == name; });
  return same != stats.block_io.end() ? *same
                                      : stats.block_io.emplace_back(BlockIo{std::move(name)});
}

void StatReader::read_block_devices() {
  devices_read_ = now_;
  const auto text = host::read_file((paths_.proc / "diskstats").string());
  auto devices =
      text ? host::parse_block_devices(*text) : Result<host::BlockDevices>(host::BlockDevices{});
  if (!devices) {
    log::warn("names of block devices cannot be read", {{"err", devices.error().message}});
  }
  devices_ = std::move(devices).value_or(host::BlockDevices{});
}

}  // namespace ceems::exporter
