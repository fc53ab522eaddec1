#include "exporter/gpu/claim/slurm_claims.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"
#include "host/cgroup/process.h"
#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxEnvironment = std::size_t{1} << 20U;
constexpr std::size_t kMaxFile = 65536;
constexpr std::size_t kMaxProcesses = 1024;  // of a job, per scrape
/// A process that slurmstepd has just forked still has the environment of slurmstepd, so each
/// process is read in two scrapes.
constexpr unsigned kLooks = 2;

constexpr std::uint64_t kNvidiaMajor = 195;  // Documentation/admin-guide/devices.txt
constexpr std::uint64_t kDrmMajor = 226;

/// What is known of one job.
struct Job {
  Clock::SystemTime started;
  bool settled = false;  ///< its environment has determined its GPUs
  Evidence evidence = Evidence::kEnvironment;
  std::vector<std::string> ordinals;
  std::uint64_t shares = 0;
  std::vector<std::string> used;  ///< GPUs on which its processes were seen
  std::map<int, unsigned> looks;  ///< reads of the environment, by pid
  std::uint64_t round = 0;        ///< number of the last snapshot with this job
};

/// The GPUs and instances that a device cgroup allows, and those it denies, by index.
struct DeviceGroup {
  std::vector<std::string> allowed;
  std::vector<std::string> denied;
};

class SlurmClaims final : public ClaimSource {
 public:
  SlurmClaims(SlurmClaimOptions options, std::shared_ptr<Inventory> inventory)
      : options_(std::move(options)), inventory_(std::move(inventory)) {}

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
  }

  Result<std::vector<Claim>> claims(const UnitSnapshot& snapshot) override {
    ++round_;
    map_directory_ = open_map_directory();
    read_devices();
    read_processes();
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
      claim.ordinals = std::move(file->ordinals);
      claim.shares = file->shares;
      claims.push_back(std::move(claim));
      return;
    }
    const auto group = device_group(unit);
    see_processes(unit, job);
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
    // The shares of a job are those of all its GPUs together, so they stay in one claim.
    const auto seen = job.shares > 0 ? std::vector<std::string>{} : job.used;
    Claim by_process = claim;
    by_process.evidence = Evidence::kProcessList;
    by_process.ordinals = without(seen, denied);
    if (!by_process.ordinals.empty()) {
      claims.push_back(std::move(by_process));
    }
    claim.evidence = job.evidence;
    claim.ordinals = without(without(job.ordinals, seen), denied);
    claim.shares = job.shares;
    if (!claim.ordinals.empty()) {
      report(claim);
      claims.push_back(std::move(claim));
    }
  }

  static std::vector<std::string> without(std::vector<std::string> ordinals,
                                          const std::vector<std::string>& others) {
    std::erase_if(ordinals, [&](const std::string& ordinal) {
      return std::find(others.begin(), others.end(), ordinal) != others.end();
    });
    return ordinals;
  }

  // Processes that the vendor's library lists.

  void read_processes() {
    used_by_pid_.clear();
    if (options_.processes == nullptr) {
      return;
    }
    const auto list = options_.processes->all();
    for (const ProcessList::Entry& entry : *list) {
      const auto index = index_of(entry);
      for (const int pid : entry.pids) {
        if (!index.empty()) {
          used_by_pid_.emplace(pid, index);
        }
      }
    }
  }

  /// SLURM's index of the GPU or instance; empty if unknown.
  [[nodiscard]] std::string index_of(const ProcessList::Entry& entry) const {
    for (const Device& device : devices_) {
      if (device.vendor != entry.vendor || device.uuid != entry.device_uuid) {
        continue;
      }
      if (entry.gpu_instance.empty()) {
        return device.index;
      }
      for (const Instance& instance : device.instances) {
        if (std::to_string(instance.gpu_instance) == entry.gpu_instance) {
          return instance.index;
        }
      }
    }
    return {};
  }

  void see_processes(const Unit& unit, Job& job) const {
    if (used_by_pid_.empty()) {
      return;
    }
    for (const int pid : unit.pids) {
      const auto [begin, end] = used_by_pid_.equal_range(pid);
      for (auto it = begin; it != end; ++it) {
        if (std::find(job.used.begin(), job.used.end(), it->second) == job.used.end()) {
          job.used.push_back(it->second);
        }
      }
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

  // Device cgroup.

  /// The devices by SLURM's indexes, and how to recognize them in a device cgroup.
  void read_devices() {
    const auto devices = inventory_->devices();
    if (devices == source_) {
      return;
    }
    source_ = devices;
    devices_ = *devices;
    apply_order_map(options_.order, devices_);
    caps_major_.reset();
    if (!options_.unified) {
      if (const auto text = host::read_file((options_.paths.proc / "devices").string())) {
        caps_major_ = parse_device_major(*text, "nvidia-caps");
      }
    }
  }

  std::optional<DeviceGroup> device_group(const Unit& unit) {
    if (options_.unified) {
      return std::nullopt;
    }
    const auto path = options_.paths.cgroup.string() + "/devices" + unit.path + "/devices.list";
    if (!host::read_file(path.c_str(), buffer_, kMaxFile)) {
      return std::nullopt;
    }
    const AllowedDevices allowed = parse_devices_list(buffer_);
    if (allowed.everything) {
      return std::nullopt;
    }
    DeviceGroup group;
    const auto put = [&](const std::string& index, std::optional<bool> may) {
      if (may && !index.empty()) {
        (*may ? group.allowed : group.denied).push_back(index);
      }
    };
    for (const Device& device : devices_) {
      const auto whole = device_allowed(device, allowed);
      put(device.index, whole);
      for (const Instance& instance : device.instances) {
        // A MIG device is used through the file of its GPU in addition to its own.
        const bool shut = device.vendor == Vendor::kNvidia && whole == false;
        put(instance.index, shut ? whole : instance_allowed(device, instance, allowed));
      }
    }
    return group;
  }

  static std::optional<bool> render_allowed(const std::optional<unsigned>& minor,
                                            const AllowedDevices& allowed) {
    return minor ? std::optional(allowed.allows(kDrmMajor, *minor)) : std::nullopt;
  }

  /// Nothing if the number of its device file is not known.
  static std::optional<bool> device_allowed(const Device& device, const AllowedDevices& allowed) {
    if (device.vendor != Vendor::kNvidia) {
      return render_allowed(device.render_minor, allowed);
    }
    return device.driver_minor ? std::optional(allowed.allows(kNvidiaMajor, *device.driver_minor))
                               : std::nullopt;
  }

  [[nodiscard]] std::optional<bool> instance_allowed(const Device& device,
                                                     const Instance& instance,
                                                     const AllowedDevices& allowed) const {
    if (device.vendor != Vendor::kNvidia) {
      return render_allowed(instance.render_minor, allowed);
    }
    if (!device.driver_minor || !caps_major_ || options_.mig_minors.empty()) {
      return std::nullopt;
    }
    return std::any_of(
        options_.mig_minors.begin(), options_.mig_minors.end(), [&](const MigMinor& minor) {
          return minor.gpu == *device.driver_minor && minor.gpu_instance == instance.gpu_instance &&
                 minor.compute_instance == instance.compute_instance &&
                 allowed.allows(*caps_major_, minor.capability);
        });
  }

  // Environments.

  /// The processes to read, oldest first.
  std::vector<int> candidates(const Unit& unit, const Job& job) {
    std::vector<std::pair<std::uint64_t, int>> by_start;
    for (const int pid : unit.pids) {
      const auto looked = job.looks.find(pid);
      if (looked != job.looks.end() && looked->second >= kLooks) {
        continue;
      }
      if (by_start.size() == kMaxProcesses) {
        break;
      }
      const auto path = (options_.paths.proc / std::to_string(pid) / "stat").string();
      const auto ticks = host::read_file(path.c_str(), buffer_, kMaxFile)
                             ? host::parse_start_ticks(buffer_)
                             : std::nullopt;
      by_start.emplace_back(ticks.value_or(std::numeric_limits<std::uint64_t>::max()), pid);
    }
    std::stable_sort(by_start.begin(), by_start.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<int> pids;
    pids.reserve(by_start.size());
    for (const auto& [ticks, pid] : by_start) {
      pids.push_back(pid);
    }
    return pids;
  }

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

  static void forget_ended(const Unit& unit, Job& job) {
    std::vector<int> pids = unit.pids;
    std::sort(pids.begin(), pids.end());
    std::erase_if(job.looks, [&](const auto& look) {
      return !std::binary_search(pids.begin(), pids.end(), look.first);
    });
  }

  void read_environments(const Unit& unit, Job& job) {
    forget_ended(unit, job);
    std::vector<std::string> step_gpus;
    Evidence step_evidence = Evidence::kEnvironment;
    std::optional<std::uint64_t> shares;
    // Raised only while files of processes are read.
    const os::RaisedCapabilities raised({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH});
    for (const int pid : candidates(unit, job)) {
      ++job.looks[pid];
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
  std::shared_ptr<const Inventory::Devices> source_;
  std::vector<Device> devices_;
  std::multimap<int, std::string> used_by_pid_;
  std::optional<std::uint64_t> caps_major_;
  std::string buffer_;
  std::string environ_;
};

}  // namespace

std::unique_ptr<ClaimSource> make_slurm_claims(SlurmClaimOptions options,
                                               std::shared_ptr<Inventory> inventory) {
  return std::make_unique<SlurmClaims>(std::move(options), std::move(inventory));
}

}  // namespace ceems::exporter::gpu
