#include "exporter/gpu/claim/slurm_claims.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"
#include "exporter/gpu/claim/batch_claims.h"
#include "host/cgroup/process.h"
#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter::gpu {
namespace {

/// N of /dev/nvidia<N>. A lost GPU that does not say its own gets one that is left.
FileNumbers by_driver_minor(const std::vector<Device>& devices) {
  FileNumbers numbers;
  std::vector<const Device*> without_minor;
  std::size_t count = 0;
  for (const Device& device : devices) {
    if (device.vendor != Vendor::kNvidia) {
      continue;
    }
    ++count;
    if (!device.driver_minor) {
      without_minor.push_back(&device);
    } else if (!numbers.emplace(std::to_string(*device.driver_minor), device.index).second) {
      return {};
    }
  }
  if (!std::ranges::all_of(without_minor, &Device::lost)) {
    return {};
  }
  auto next = without_minor.begin();
  for (std::size_t n = 0; n < count && next != without_minor.end(); ++n) {
    if (numbers.emplace(std::to_string(n), (*next)->index).second) {
      ++next;
    }
  }
  return numbers;
}

/// The place of /dev/dri/renderD<N> among the GPUs of AMD.
FileNumbers by_render_node(const std::vector<Device>& devices) {
  std::map<unsigned, std::string> nodes;
  for (const Device& device : devices) {
    if (device.vendor == Vendor::kAmd &&
        (!device.render_minor || !nodes.emplace(*device.render_minor, device.index).second)) {
      return {};
    }
  }
  FileNumbers numbers;
  for (const auto& [minor, index] : nodes) {
    numbers.emplace(std::to_string(numbers.size()), index);
  }
  return numbers;
}

constexpr std::size_t kMaxOrdinals = 1024;
constexpr std::size_t kMaxOrdinal = 32;

std::vector<std::string> split_ordinals(std::string_view text) {
  std::vector<std::string> ordinals;
  while (!text.empty() && ordinals.size() < kMaxOrdinals) {
    const auto part = trim(take_until(text, ','));
    // A GPU that is named twice counts once.
    if (!part.empty() && part.size() <= kMaxOrdinal &&
        std::find(ordinals.begin(), ordinals.end(), part) == ordinals.end()) {
      ordinals.emplace_back(part);
    }
  }
  return ordinals;
}

/// Nothing if any entry is a number.
std::vector<std::string> split_uuids(std::string_view text) {
  constexpr std::size_t kMaxUuid = 96;
  std::vector<std::string> uuids;
  while (!text.empty() && uuids.size() < kMaxOrdinals) {
    const auto part = trim(take_until(text, ','));
    if (part.size() > kMaxUuid || !(part.starts_with("GPU-") || part.starts_with("MIG-"))) {
      return {};
    }
    uuids.emplace_back(part);
  }
  return uuids;
}

constexpr std::size_t kMaxEnvironment = std::size_t{1} << 20U;
constexpr std::size_t kMaxFile = 65536;

/// A job's claims so far, and where they come from.
struct Job {
  Clock::SystemTime started;
  bool settled = false;  ///< its environment has determined its GPUs
  Evidence evidence = Evidence::kEnvironment;
  std::vector<std::string> ordinals;
  std::vector<std::string> uuids;  ///< from the same process
  std::uint64_t shares = 0;
  std::vector<std::string> used;  ///< GPUs on which its processes were seen
  ProcessLooks looks;             ///< reads of environments
  std::uint64_t round = 0;        ///< number of the last snapshot with this job
};

class SlurmClaims final : public ClaimSource {
 public:
  SlurmClaims(SlurmClaimOptions options, std::shared_ptr<Inventory> inventory)
      : options_(std::move(options)),
        inventory_(std::move(inventory)),
        groups_(options_.paths, options_.unified, options_.mig_minors) {}

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
  }

  Result<std::vector<Claim>> claims(const UnitSnapshot& snapshot) override {
    ++round_;
    map_directory_ = open_map_directory();
    read_devices();
    processes_.refresh(options_.processes.get(), devices_);
    std::vector<Claim> claims;
    for (const Unit& unit : snapshot.units) {
      if (unit.ended) {
        continue;
      }
      resolve(unit, job_of(unit), claims);
    }
    std::erase_if(jobs_, [this](const auto& entry) { return entry.second.round != round_; });
    return claims;
  }

 private:
  Job& job_of(const Unit& unit) {
    Job& job = jobs_[{unit.cgrouphostname, unit.uuid}];
    if (job.round == 0 || job.started != unit.started) {
      job = {};  // new, or requeued with its old number
      job.started = unit.started;
    }
    job.round = round_;
    return job;
  }

  void resolve(const Unit& unit, Job& job, std::vector<Claim>& claims) {
    Claim claim;
    claim.uuid = unit.uuid;
    claim.cgrouphostname = unit.cgrouphostname;
    if (auto file = map_file(unit)) {
      claim.evidence = Evidence::kRootFile;
      claim.ordinals = indexes_of(file->ordinals);
      claim.shares = file->shares;
      claims.push_back(std::move(claim));
      return;
    }
    const auto group = groups_.of(unit, devices_);
    processes_.add_gpus_of(unit, job.used);
    if (!job.settled) {
      read_environments(unit, job);
    }
    if (group && !group->allowed.empty()) {
      claim.evidence = Evidence::kDeviceGroup;
      claim.ordinals = group->allowed;
      claim.shares = job.shares;
      claims.push_back(std::move(claim));
      return;
    }
    const auto denied = group ? group->denied : std::vector<std::string>{};
    // A job's shares apply to all its GPUs together, so they stay in one claim.
    const auto seen = job.shares > 0 ? std::vector<std::string>{} : job.used;
    Claim by_process = claim;
    by_process.evidence = Evidence::kProcessList;
    by_process.ordinals = without(seen, denied);
    if (!by_process.ordinals.empty()) {
      claims.push_back(std::move(by_process));
    }
    const auto named = named_by(job);
    claim.evidence = job.evidence;
    claim.ordinals = without(without(named, seen), denied);
    claim.shares = job.shares;
    if (contradicts(named, seen)) {
      report_contradiction(unit, named, seen);
    } else if (!claim.ordinals.empty()) {
      report(claim);
      claims.push_back(std::move(claim));
    }
  }

  // Files of the prolog.

  [[nodiscard]] bool trusted(const struct stat& info) const {
    return (info.st_uid == 0 || info.st_uid == options_.trusted_uid) &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  }

  [[nodiscard]] UniqueFd open_map_directory() {
    if (options_.map_directory.empty()) {
      return {};
    }
    UniqueFd fd(::open(options_.map_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat info{};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
      return {};
    }
    if (!trusted(info)) {
      warn_once(
          "directory of GPU maps ignored: expected owner root and no write permission for others",
          options_.map_directory);
      return {};
    }
    return fd;
  }

  std::optional<GpuMapFile> map_file(const Unit& unit) {
    if (!map_directory_.valid()) {
      return std::nullopt;
    }
    if (!unit.cgrouphostname.empty()) {
      if (auto file = read_map_file(unit.cgrouphostname + "." + unit.uuid)) {
        return file;
      }
    }
    return read_map_file(unit.uuid);
  }

  std::optional<GpuMapFile> read_map_file(const std::string& name) {
    if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos) {
      return std::nullopt;
    }
    // A FIFO must not block the scrape.
    const UniqueFd fd(::openat(map_directory_.get(), name.c_str(),
                               O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info{};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
      return std::nullopt;
    }
    const std::string path = options_.map_directory + "/" + name;
    if (!S_ISREG(info.st_mode) || !trusted(info)) {
      warn_once("GPU map ignored: expected owner root and no write permission for others", path);
      return std::nullopt;
    }
    std::string text;
    if (!host::reread(fd, text, kMaxFile)) {
      return std::nullopt;
    }
    auto file = parse_gpu_map_file(text);
    if (!file) {
      warn_once("GPU map ignored: expected indexes of GPUs only", path);
    }
    return file;
  }

  void warn_once(std::string_view message, const std::string& path) {
    constexpr std::size_t kMaxWarnings = 100;
    if (warned_.size() < kMaxWarnings && warned_.emplace(path, round_).second) {
      log::warn(message, {{"collector", "slurm"}, {"path", path}});
    }
  }

  /// The devices by SLURM's indexes.
  void read_devices() {
    const auto devices = inventory_->devices();
    if (devices == source_) {
      return;
    }
    source_ = devices;
    devices_ = *devices;
    apply_order_map(options_.order, devices_);
    by_file_ = options_.order.empty() ? indexes_by_file(devices_) : FileNumbers{};
    if (!by_file_.empty() && !std::exchange(told_order_, true)) {
      log::info(
          "device files of GPUs are in another order than the GPUs of the library; SLURM is taken "
          "to "
          "number device files (--collector.slurm.gpu-order-map)",
          {{"collector", "slurm"}});
    }
    groups_.refresh();
  }

  // Environments.

  /// A process of root that runs slurmstepd. Neither condition alone is enough: users can give a
  /// program that name, and they can start programs of root (sudo) with an environment of their
  /// choice.
  bool is_step_daemon(const std::filesystem::path& process) {
    if (!host::read_file((process / "status").c_str(), buffer_, kMaxFile) ||
        host::parse_status_uid(buffer_) != 0U) {
      return false;
    }
    std::array<char, 4096> target{};
    const auto length = ::readlink((process / "exe").c_str(), target.data(), target.size());
    if (length <= 0) {
      return false;
    }
    const std::string_view path(target.data(), static_cast<std::size_t>(length));
    return path.substr(path.rfind('/') + 1) == "slurmstepd";
  }

  void read_environments(const Unit& unit, Job& job) {
    std::vector<std::string> step_gpus;
    Evidence step_evidence = Evidence::kEnvironment;
    std::optional<std::uint64_t> shares;
    // Raised only while files of processes are read.
    const os::RaisedCapabilities raised({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH});
    for (const int pid : job.looks.next(options_.paths.proc, unit)) {
      job.looks.count(pid);
      const auto process = options_.paths.proc / std::to_string(pid);
      if (!host::read_file((process / "environ").c_str(), environ_, kMaxEnvironment)) {
        continue;
      }
      auto found = parse_job_environment(environ_, unit.uuid);
      if (!found || (found->job_gpus.empty() && found->step_gpus.empty() && !found->shares)) {
        continue;
      }
      const Evidence evidence =
          is_step_daemon(process) ? Evidence::kManager : Evidence::kEnvironment;
      if (options_.trusted_only && evidence == Evidence::kEnvironment) {
        continue;
      }
      if (!shares) {
        shares = found->shares;
      }
      if (job.ordinals.empty() && !found->job_gpus.empty()) {
        job.ordinals = std::move(found->job_gpus);
        job.uuids = std::move(found->uuids);
        job.evidence = evidence;
      }
      if (step_gpus.empty() && !found->step_gpus.empty()) {
        step_gpus = std::move(found->step_gpus);
        step_evidence = evidence;
      }
      if (!job.ordinals.empty() && (shares || !options_.with_shares)) {
        break;
      }
    }
    if (job.ordinals.empty() && !step_gpus.empty()) {
      job.ordinals = std::move(step_gpus);
      job.evidence = step_evidence;
    }
    job.shares = shares.value_or(0);
    job.settled = !job.ordinals.empty();
    if (job.settled) {
      job.looks.clear();
    }
  }

  /// The GPUs that the environment names. UUIDs say better than numbers which they are, if there
  /// are as many; a job may restrict itself to fewer than it holds.
  [[nodiscard]] std::vector<std::string> named_by(const Job& job) const {
    auto indexes = visible_indexes(job.uuids, devices_);
    return !indexes.empty() && indexes.size() == job.ordinals.size() ? indexes
                                                                     : indexes_of(job.ordinals);
  }

  /// The GPUs that SLURM's numbers mean.
  [[nodiscard]] std::vector<std::string> indexes_of(const std::vector<std::string>& numbers) const {
    if (by_file_.empty()) {
      return numbers;
    }
    std::vector<std::string> indexes;
    for (const std::string& number : numbers) {
      if (const auto found = by_file_.find(number); found != by_file_.end()) {
        indexes.push_back(found->second);
      }
    }
    return indexes;
  }

  /// Whether the job computes on GPUs, and on none of those that the numbers mean. The numbers are
  /// wrong then.
  static bool contradicts(const std::vector<std::string>& named,
                          const std::vector<std::string>& seen) {
    return !named.empty() && !seen.empty() && without(named, seen).size() == named.size();
  }

  void report_contradiction(const Unit& unit,
                            const std::vector<std::string>& named,
                            const std::vector<std::string>& seen) {
    if (!std::exchange(told_contradiction_, true)) {
      log::warn(
          "a job computes on other GPUs than its SLURM_JOB_GPUS names; those on which its "
          "processes are count. Check --collector.slurm.gpu-order-map and gres.conf",
          {{"collector", "slurm"},
           {"uuid", unit.uuid},
           {"named", fmt::format("{}", fmt::join(named, ","))},
           {"seen", fmt::format("{}", fmt::join(seen, ","))}});
    }
  }

  void report(const Claim& claim) {
    if (claim.evidence == Evidence::kEnvironment && !std::exchange(told_, true)) {
      log::warn(
          "GPUs of jobs are only known from the environment of their processes, which users can "
          "forge; let a prolog write --collector.slurm.gpu-map-dir instead",
          {{"collector", "slurm"}, {"directory", options_.map_directory}});
    }
  }

  const SlurmClaimOptions options_;
  const std::shared_ptr<Inventory> inventory_;

  std::map<std::pair<std::string, std::string>, Job> jobs_;  // by virtual node and job
  std::uint64_t round_ = 0;
  UniqueFd map_directory_;
  std::map<std::string, std::uint64_t> warned_;
  bool told_ = false;
  bool told_order_ = false;
  bool told_contradiction_ = false;
  FileNumbers by_file_;
  std::shared_ptr<const Inventory::Devices> source_;
  std::vector<Device> devices_;
  DeviceGroups groups_;
  SeenProcesses processes_;
  std::string buffer_;
  std::string environ_;
};

}  // namespace

std::optional<JobEnvironment> parse_job_environment(std::string_view environ,
                                                    std::string_view job) {
  environ = environ.substr(0, environ.rfind('\0') + 1);
  JobEnvironment found;
  bool of_job = false;
  while (!environ.empty()) {
    std::string_view value = take_until(environ, '\0');
    const auto name = take_until(value, '=');
    if (name == "SLURM_JOB_ID") {
      of_job |= value == job;
    } else if (name == "SLURM_JOB_GPUS") {
      found.job_gpus = split_ordinals(value);
    } else if (name == "SLURM_STEP_GPUS") {
      found.step_gpus = split_ordinals(value);
    } else if (name == "CUDA_VISIBLE_DEVICES") {
      found.uuids = split_uuids(value);
    } else if (name == "SLURM_SHARDS_ON_NODE" || name == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") {
      found.shares = parse_int(value).value_or(0);
    }
  }
  return of_job ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<GpuMapFile> parse_gpu_map_file(std::string_view text) {
  GpuMapFile file;
  bool has_shares = false;
  for (auto word = take_word(text); !word.empty(); word = take_word(text)) {
    constexpr std::string_view kShares = "shares=";
    if (word.starts_with(kShares)) {
      const auto shares = parse_int(word.substr(kShares.size()));
      if (!shares || has_shares) {
        return std::nullopt;
      }
      file.shares = *shares;
      has_shares = true;
      continue;
    }
    for (std::string& ordinal : split_ordinals(word)) {
      if (!parse_int(ordinal) || file.ordinals.size() == kMaxOrdinals) {
        return std::nullopt;
      }
      if (std::find(file.ordinals.begin(), file.ordinals.end(), ordinal) == file.ordinals.end()) {
        file.ordinals.push_back(std::move(ordinal));
      }
    }
  }
  return file;
}

std::vector<OrderEntry> parse_order_map(std::string_view text) {
  std::vector<OrderEntry> entries;
  while (!text.empty()) {
    std::string_view target = take_until(text, ',');
    if (target.find(':') == std::string_view::npos) {
      continue;
    }
    const auto index = trim(take_until(target, ':'));
    if (index.empty()) {
      continue;
    }
    const bool one_dot = std::count(target.begin(), target.end(), '.') == 1;
    const auto position = parse_int(trim(take_until(target, '.')));
    const auto instance = parse_int(trim(target));
    if (!position || (one_dot && !instance)) {
      continue;
    }
    entries.push_back({.slurm_index = std::string(index),
                       .position = *position,
                       .gpu_instance = one_dot ? instance : std::nullopt});
  }
  return entries;
}

void apply_order_map(const std::vector<OrderEntry>& order, std::vector<Device>& devices) {
  for (const OrderEntry& entry : order) {
    for (Device& device : devices) {
      if (device.position != entry.position) {
        continue;
      }
      if (!entry.gpu_instance) {
        device.index = entry.slurm_index;
        continue;
      }
      const auto found = std::find_if(
          device.instances.begin(), device.instances.end(),
          [&](const Instance& instance) { return instance.gpu_instance == *entry.gpu_instance; });
      if (found != device.instances.end()) {
        found->index = entry.slurm_index;
      }
    }
  }
}

FileNumbers indexes_by_file(const std::vector<Device>& devices) {
  if (std::ranges::any_of(devices, &Device::split)) {
    return {};
  }
  FileNumbers numbers;
  for (const Vendor vendor : {Vendor::kNvidia, Vendor::kAmd}) {
    auto found = vendor == Vendor::kNvidia ? by_driver_minor(devices) : by_render_node(devices);
    if (found.empty()) {
      continue;
    }
    if (!numbers.empty()) {
      return {};  // numbers of two vendors mean nothing
    }
    numbers = std::move(found);
  }
  return std::ranges::all_of(numbers, [](const auto& n) { return n.first == n.second; })
             ? FileNumbers{}
             : numbers;
}

std::unique_ptr<ClaimSource> make_slurm_claims(SlurmClaimOptions options,
                                               std::shared_ptr<Inventory> inventory) {
  return std::make_unique<SlurmClaims>(std::move(options), std::move(inventory));
}

}  // namespace ceems::exporter::gpu
