#include "exporter/gpu/claim/batch_claims.h"

#include <linux/capability.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/gpu/claim/evidence.h"
#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxEnvironment = std::size_t{1} << 20U;
constexpr std::size_t kMaxEntries = 1024;
constexpr std::size_t kMaxEntry = 96;

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::ranges::find(list, text) == list.end()) {
    list.push_back(text);
  }
}

/// GI and CI of "MIG-GPU-UUID/GI/CI", the form of drivers before 470.
void add_old_instance(std::string_view entry,
                      const std::vector<Device>& devices,
                      std::vector<std::string>& indexes) {
  constexpr std::string_view kMig = "MIG-";
  entry.remove_prefix(kMig.size());
  const std::string_view uuid = take_until(entry, '/');
  const auto gpu_instance = parse_int(take_until(entry, '/'));
  const auto compute_instance = parse_int(entry);
  for (const Device& device : devices) {
    if (!same_in_any_case(device.uuid, uuid)) {
      continue;
    }
    for (const Instance& instance : device.instances) {
      if (instance.gpu_instance == gpu_instance && instance.compute_instance == compute_instance) {
        add_once(indexes, instance.index);
      }
    }
  }
}

void add_entry(std::string_view entry,
               const std::vector<Device>& devices,
               std::vector<std::string>& indexes) {
  if (entry.starts_with("MIG-") && entry.find('/') != std::string_view::npos) {
    add_old_instance(entry, devices, indexes);
    return;
  }
  const auto position = parse_int(entry);
  for (const Device& device : devices) {
    if (device.vendor != Vendor::kNvidia) {
      continue;
    }
    if (position ? device.position == *position : same_in_any_case(device.uuid, entry)) {
      add_once(indexes, device.index);
    }
    for (const Instance& instance : device.instances) {
      if (!position && same_in_any_case(instance.uuid, entry)) {
        add_once(indexes, instance.index);
      }
    }
  }
}

/// A job's claims so far, and where they come from.
struct Job {
  Clock::SystemTime started;
  bool settled = false;              ///< its environment has determined its GPUs
  std::vector<std::string> visible;  ///< entries of CUDA_VISIBLE_DEVICES
  std::vector<std::string> used;     ///< GPUs on which its processes were seen
  ProcessLooks looks;                ///< reads of environments
  std::uint64_t round = 0;           ///< number of the last snapshot with this job
};

class BatchClaims final : public ClaimSource {
 public:
  BatchClaims(BatchClaimOptions options, std::shared_ptr<Inventory> inventory)
      : options_(std::move(options)),
        inventory_(std::move(inventory)),
        groups_(options_.paths, options_.unified, options_.mig_minors) {}

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    const auto devices = inventory_->devices();
    const bool split =
        std::ranges::any_of(*devices, [](const Device& device) { return device.split; });
    if (options_.trusted_only || (options_.manager_gpus && !split)) {
      return {};
    }
    return {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
  }

  Result<std::vector<Claim>> claims(const UnitSnapshot& snapshot) override {
    ++round_;
    if (auto devices = inventory_->devices(); devices != devices_) {
      devices_ = std::move(devices);
      groups_.refresh();
    }
    processes_.refresh(options_.processes.get(), *devices_);
    std::vector<Claim> claims;
    for (const Unit& unit : snapshot.units) {
      if (!unit.ended) {
        resolve(unit, job_of(unit), claims);
      }
    }
    std::erase_if(jobs_, [this](const auto& entry) { return entry.second.round != round_; });
    return claims;
  }

 private:
  Job& job_of(const Unit& unit) {
    Job& job = jobs_[unit.uuid];
    if (job.round == 0 || job.started != unit.started) {
      job = {};  // new, or requeued with its old id
      job.started = unit.started;
    }
    job.round = round_;
    return job;
  }

  static void add_claim(const Unit& unit,
                        Evidence evidence,
                        std::vector<std::string> indexes,
                        std::vector<Claim>& claims) {
    if (!indexes.empty()) {
      claims.push_back({.uuid = unit.uuid,
                        .cgrouphostname = unit.cgrouphostname,
                        .evidence = evidence,
                        .ordinals = std::move(indexes),
                        .evenly = true});
    }
  }

  void resolve(const Unit& unit, Job& job, std::vector<Claim>& claims) {
    std::vector<std::string> given;
    bool environment = !options_.manager_gpus;
    if (options_.manager_gpus) {
      if (const auto gpus = options_.manager_gpus(unit)) {
        given = indexes_of(gpus->minors);
        add_claim(unit, Evidence::kManager, given, claims);
        if (!gpus->instances) {
          return;
        }
        environment = true;
      }
    }
    const auto group = groups_.of(unit, *devices_);
    if (group && !group->allowed.empty()) {
      add_claim(unit, Evidence::kDeviceGroup, without(group->allowed, given), claims);
      return;
    }
    if (group) {
      given.insert(given.end(), group->denied.begin(), group->denied.end());
    }
    processes_.add_gpus_of(unit, job.used);
    auto used = without(job.used, given);
    add_claim(unit, Evidence::kProcessList, used, claims);
    if (!environment || options_.trusted_only) {
      return;
    }
    if (!job.settled) {
      read_environments(unit, job);
    }
    auto visible = without(without(visible_indexes(job.visible, *devices_), used), given);
    if (!visible.empty()) {
      report();
    }
    add_claim(unit, Evidence::kEnvironment, std::move(visible), claims);
  }

  [[nodiscard]] std::vector<std::string> indexes_of(const std::vector<unsigned>& minors) const {
    std::vector<std::string> indexes;
    for (const unsigned minor : minors) {
      for (const Device& device : *devices_) {
        if (device.driver_minor.value_or(device.position) == minor) {
          add_once(indexes, device.index);
          break;  // of several vendors, the first one counts
        }
      }
    }
    return indexes;
  }

  void read_environments(const Unit& unit, Job& job) {
    const os::RaisedCapabilities raised({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH});
    for (const int pid : job.looks.next(options_.paths.proc, unit)) {
      job.looks.count(pid);
      const auto path = (options_.paths.proc / std::to_string(pid) / "environ").string();
      if (!host::read_file(path.c_str(), environ_, kMaxEnvironment)) {
        continue;
      }
      if (auto found = parse_visible_devices(environ_, options_.job_variable, unit.uuid)) {
        job.visible = *std::move(found);
        job.settled = true;
        job.looks.clear();
        return;
      }
    }
  }

  void report() {
    if (!std::exchange(told_, true)) {
      log::warn(
          "GPUs of jobs are only known from the environment of their processes, which users can "
          "forge",
          {{"collector", options_.collector}});
    }
  }

  const BatchClaimOptions options_;
  const std::shared_ptr<Inventory> inventory_;

  std::map<std::string, Job> jobs_;
  std::uint64_t round_ = 0;
  bool told_ = false;
  std::shared_ptr<const Inventory::Devices> devices_;
  DeviceGroups groups_;
  SeenProcesses processes_;
  std::string environ_;
};

}  // namespace

std::optional<std::vector<std::string>> parse_visible_devices(std::string_view environ,
                                                              std::string_view variable,
                                                              std::string_view job) {
  environ = environ.substr(0, environ.rfind('\0') + 1);
  std::vector<std::string> entries;
  bool of_job = false;
  while (!environ.empty()) {
    std::string_view value = take_until(environ, '\0');
    const auto name = take_until(value, '=');
    if (name == variable) {
      of_job |= value == job;
    } else if (name == "CUDA_VISIBLE_DEVICES") {
      entries.clear();
      while (!value.empty() && entries.size() < kMaxEntries) {
        const auto entry = trim(take_until(value, ','));
        if (!entry.empty() && entry.size() <= kMaxEntry) {
          entries.emplace_back(entry);
        }
      }
    }
  }
  return of_job && !entries.empty() ? std::optional(std::move(entries)) : std::nullopt;
}

std::vector<std::string> visible_indexes(const std::vector<std::string>& entries,
                                         const std::vector<Device>& devices) {
  std::vector<std::string> indexes;
  for (const std::string& entry : entries) {
    add_entry(entry, devices, indexes);
  }
  return indexes;
}

std::unique_ptr<ClaimSource> make_batch_claims(BatchClaimOptions options,
                                               std::shared_ptr<Inventory> inventory) {
  return std::make_unique<BatchClaims>(std::move(options), std::move(inventory));
}

}  // namespace ceems::exporter::gpu
