#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/claim/gres_conf.h"
#include "exporter/gpu/device.h"
#include "exporter/unit/unit.h"
#include "host/paths.h"

// What shows which GPUs a batch job holds, for the claims of all batch systems. GPUs and instances
// are named by Device::index and Instance::index.
namespace ceems::exporter::gpu {

/// devices.list of a device cgroup (v1): what its processes may use.
struct AllowedDevices {
  bool everything = false;
  struct Range {
    std::uint64_t major = 0;
    std::optional<std::uint64_t> minor = {};  ///< nothing means all
  };
  std::vector<Range> character = {};
  [[nodiscard]] bool allows(std::uint64_t major, std::uint64_t minor) const;
};
AllowedDevices parse_devices_list(std::string_view text);

/// Major number of a character device in /proc/devices.
std::optional<std::uint64_t> parse_device_major(std::string_view devices, std::string_view name);

/// The GPUs and instances that a device cgroup allows, and those it denies, by index.
struct DeviceGroup {
  std::vector<std::string> allowed;
  std::vector<std::string> denied;
};

/// Reads the device cgroups of units. With cgroup v2 they cannot be read. Not thread-safe.
class DeviceGroups {
 public:
  DeviceGroups(host::Paths paths, bool unified, std::vector<MigMinor> mig_minors);

  /// Reads the major number of MIG's device files. Call it when the GPUs have changed.
  void refresh();
  /// Nothing if the cgroup does not exist or restricts nothing.
  std::optional<DeviceGroup> of(const Unit& unit, const std::vector<Device>& devices);

 private:
  [[nodiscard]] std::optional<bool> instance_allowed(const Device& device,
                                                     const Instance& instance,
                                                     const AllowedDevices& allowed) const;

  const host::Paths paths_;
  const bool unified_;
  const std::vector<MigMinor> mig_minors_;
  std::optional<std::uint64_t> caps_major_;
  std::string buffer_;
};

/// The GPUs on which the vendors' libraries list processes now. Not thread-safe.
class SeenProcesses {
 public:
  /// `processes` may be null.
  void refresh(const ProcessList* processes, const std::vector<Device>& devices);
  /// Adds the GPUs of the unit's processes to `indexes`, each once.
  void add_gpus_of(const Unit& unit, std::vector<std::string>& indexes) const;

 private:
  std::multimap<int, std::string> by_pid_;
};

/// Decides which processes of a job still have to be read. A process that a daemon has just forked
/// still has the environment of the daemon, so each process is read twice.
class ProcessLooks {
 public:
  /// The processes to read, oldest first. Processes that have ended are forgotten.
  std::vector<int> next(const std::filesystem::path& proc, const Unit& unit);
  /// The process was read.
  void count(int pid);
  void clear() { looks_.clear(); }

 private:
  std::map<int, unsigned> looks_;  // by pid
};

/// `indexes` without the `others`.
std::vector<std::string> without(std::vector<std::string> indexes,
                                 const std::vector<std::string>& others);

}  // namespace ceems::exporter::gpu
