#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/device.h"
#include "exporter/gpu/inventory/lost.h"
#include "exporter/gpu/inventory/vendor_tools.h"
#include "host/paths.h"
#include "os/command.h"

namespace ceems::exporter::gpu {

struct InventoryOptions {
  host::Paths paths;
  /// "": vendors on the PCI bus; "nvidia" or "amd": only that one; "nogpu": none.
  std::string type;
  std::string nvidia_smi;  ///< path; empty: search in search_path
  std::string amd_smi;
  std::string rocm_smi;
  std::string search_path;  ///< PATH of the exporter and of the tools that it runs
  /// This program, which is run with "list-gpus" (library_list.h) in this environment. If empty,
  /// only tools list GPUs.
  std::string own_program = {};
  std::map<std::string, std::string> own_environment = {};
  /// Libraries to load instead of library_names(), by Vendor. Those names if empty.
  std::array<std::string, 3> libraries = {};
  /// Time limits of one listing by the thread, and of the library within it.
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds library_timeout{5000};
  /// When the start of the program stops waiting for a hanging library or tool. They get a short
  /// time even if that has passed.
  std::chrono::steady_clock::time_point start_until = std::chrono::steady_clock::time_point::max();
  /// Pause before the GPUs of a vendor are listed again after a failure: the first one, doubled
  /// each time up to the maximum.
  std::chrono::milliseconds first_retry_pause{10'000};
  std::chrono::milliseconds max_retry_pause{600'000};
  /// How often the thread checks whether GPUs were split or joined.
  std::chrono::milliseconds watch_period{30'000};
};

/// The GPUs of a vendor and what listed them.
struct Listing {
  std::vector<Device> devices;
  std::string_view by = "tool";  ///< "library", "tool" or "sysfs"; for the log
};

/// Lists the GPUs of a vendor: through its library first, then with its tool.
///
/// The library is used in a separate process, which is this program run with "list-gpus". A hanging
/// or crashing library then does no harm, it can be used before privileges are dropped, and a node
/// whose collector `gpu` is off does not spend the library's memory.
///
/// The library takes precedence, because the tools themselves use it, it numbers GPUs and MIG
/// devices in the same order, and it has driver minors and SM counts. The tool is run if the
/// library is missing, fails, hangs or lists nothing, and always for vGPUs (`nvidia-smi vgpu
/// --query`), whose mdev ids are not read from the library. CU counts, render minors and ids of
/// partitions of AMD GPUs always come from sysfs. If two AMD GPUs have the same serial number
/// (boards with two GPUs), it is the uuid of both with the tool; with the library the second one
/// has its PCI address as uuid. GPUs of Intel are listed from sysfs alone (sysfs.h), which
/// has their render nodes.
///
/// `runner` must outlive the object. Safe for concurrent use.
class Lister {
 public:
  Lister(const InventoryOptions& options, os::CommandRunner& runner)
      : options_(options), runner_(runner) {}

  using Deadline = std::chrono::steady_clock::time_point;

  /// The library gets at most half of the time, so that enough is left for the tool if it hangs.
  /// The error has the messages of both.
  [[nodiscard]] Result<Listing> list(Vendor vendor,
                                     Deadline deadline,
                                     const std::stop_token& stop) const;
  [[nodiscard]] Result<std::vector<VgpuEntry>> list_vgpus(Deadline deadline,
                                                          const std::stop_token& stop) const;

 private:
  using Devices = Result<std::vector<Device>>;

  [[nodiscard]] Devices by_library(Vendor vendor,
                                   Deadline deadline,
                                   const std::stop_token& stop) const;
  [[nodiscard]] Devices by_nvidia_smi(Deadline deadline, const std::stop_token& stop) const;
  [[nodiscard]] Devices by_amd_tool(Deadline deadline, const std::stop_token& stop) const;
  [[nodiscard]] Result<std::string> run_tool(const std::string& path,
                                             std::vector<std::string> arguments,
                                             Deadline deadline,
                                             const std::stop_token& stop) const;
  [[nodiscard]] Result<std::string> run(os::Command command, const std::stop_token& stop) const;
  [[nodiscard]] Result<std::string> tool(const std::string& given, const char* name) const;

  const InventoryOptions& options_;
  os::CommandRunner& runner_;
};

/// The GPUs of this node. The program has one inventory, shared by all users of GPUs. Thread-safe.
///
/// PCI devices show which vendors are present, and a Lister lists their GPUs: first in create(),
/// with the privileges that the program still has, but no longer than the start may take. After
/// start() a thread lists at once what timed out in create(), retries failures with growing pauses,
/// and lists all GPUs again when they are split differently (gpu_layout(), checked every
/// watch_period). A collector that uses the library anyway reports its devices with observe(); they
/// take precedence over the lister's. Without a GPU there is no thread.
///
/// A GPU that is no longer listed while its PCI device exists (fallen off the bus) keeps its place,
/// so that the GPUs after it keep their numbers. One that is lost at the start has a place, too
/// (lost.h).
class Inventory {
 public:
  using Devices = std::vector<Device>;

  /// Lists the GPUs, until options.start_until at the latest. `runner` must outlive the object.
  static std::shared_ptr<Inventory> create(InventoryOptions options, os::CommandRunner& runner);
  ~Inventory();
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  /// Starts the thread if there are GPUs. Call it after privileges were dropped; a second call does
  /// nothing.
  void start();
  /// Waits until the thread has retried once what timed out in create().
  void wait_first(std::chrono::steady_clock::time_point deadline) const;

  /// NVIDIA first, then AMD, then Intel, each in the order of its listing. Never null.
  [[nodiscard]] std::shared_ptr<const Devices> devices() const;
  /// True if there are no GPUs and none can appear.
  [[nodiscard]] bool has_no_gpus() const;
  /// True if any GPU can have vGPUs.
  [[nodiscard]] bool has_vgpus() const;

  /// Reports the GPUs of a vendor as its library lists them now, from a collector that keeps it
  /// open. Cheap if nothing has changed. Not for Intel.
  void observe(Vendor vendor, Devices devices);

  /// Called by the creation of a collector that maps vGPUs: reads Device::mdevs now, and again on
  /// refresh_mdevs().
  void want_mdevs();
  /// Makes the thread read the vGPUs again and waits at most `patience` for it. For changed VMs.
  void refresh_mdevs(std::chrono::milliseconds patience = std::chrono::milliseconds(20));

  /// Names and adds lost GPUs; see identify_lost().
  void identify_lost(std::vector<DeviceState>& devices) const {
    gpu::identify_lost(options_.paths, devices);
  }

  [[nodiscard]] Assignments& assignments() { return assignments_; }

  /// HELP text of a family that several managers share: the first one given, because a second text
  /// for the same family would lose series.
  std::string shared_help(const std::string& help);

 private:
  using Steady = std::chrono::steady_clock;

  Inventory(InventoryOptions options, os::CommandRunner& runner);

  void run(const std::stop_token& stop);
  void discover(Vendor vendor, Steady::time_point deadline, const std::stop_token& stop);
  void discover_again(const std::set<Vendor>& vendors, const std::stop_token& stop);
  void read_mdevs(Steady::time_point deadline, const std::stop_token& stop);
  void check_layout(const std::stop_token& stop);
  void replace(Vendor vendor, Devices found) CEEMS_REQUIRES(mutex_);
  [[nodiscard]] bool observed_lately(Vendor vendor) const CEEMS_REQUIRES(mutex_);

  const InventoryOptions options_;
  const Lister lister_;
  const std::set<Vendor> vendors_;  // whose GPUs are listed
  Assignments assignments_;

  mutable Mutex mutex_;
  Condition wake_;
  mutable Condition done_;
  std::shared_ptr<const Devices> devices_ CEEMS_GUARDED_BY(mutex_) =
      std::make_shared<const Devices>();
  std::map<Vendor, Devices> observed_ CEEMS_GUARDED_BY(mutex_);  // last argument of observe()
  std::map<Vendor, Steady::time_point> observed_at_ CEEMS_GUARDED_BY(mutex_);
  std::set<Vendor> failed_ CEEMS_GUARDED_BY(mutex_);  // vendors whose last listing failed
  std::string layout_ CEEMS_GUARDED_BY(mutex_);       // at the last listing
  std::string mdev_error_ CEEMS_GUARDED_BY(mutex_);
  std::string help_ CEEMS_GUARDED_BY(mutex_);
  bool mdevs_wanted_ CEEMS_GUARDED_BY(mutex_) = false;
  bool refresh_requested_ CEEMS_GUARDED_BY(mutex_) = false;
  unsigned long refreshes_ CEEMS_GUARDED_BY(mutex_) = 0;  // completed refreshes of vGPUs
  bool started_ CEEMS_GUARDED_BY(mutex_) = false;
  bool late_ CEEMS_GUARDED_BY(mutex_) = false;  // the worker retries create()'s timeouts at once
  std::jthread worker_;  // the last member, so that it is joined before the others are destroyed
};

}  // namespace ceems::exporter::gpu
