#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "exporter/gpu/claim/assignments.h"
#include "exporter/gpu/device.h"
#include "exporter/gpu/inventory/inventory_options.h"
#include "exporter/gpu/inventory/lister.h"
#include "os/command.h"

namespace ceems::exporter::gpu {

/// The GPUs of this node. One for the whole program, shared by all that need them; thread-safe.
///
/// PCI devices say which vendors, a Lister lists their GPUs: first in
/// create(), with the privileges that the program still has, but no longer than the start may take.
/// After start() a worker lists what was too slow for that at once, what failed again with growing
/// pauses, and all anew when GPUs are split otherwise (gpu_layout(), looked at every watch_period);
/// a collector that reads the library anyway tells what it sees by observe(), which then counts
/// more than what the lister finds. Where there is no GPU nothing runs.
///
/// A GPU that is not listed any more while its PCI device is there (fallen off the bus) keeps its
/// place, so that those behind it keep their numbers.
class Inventory {
 public:
  using Devices = std::vector<Device>;

  /// Lists the GPUs, until options.start_until at the latest. `runner` outlives the object.
  static std::shared_ptr<Inventory> create(InventoryOptions options, os::CommandRunner& runner);
  ~Inventory();
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  /// Starts the worker where there are GPUs. After privileges were dropped; a second call does
  /// nothing.
  void start();
  /// Waits until the worker has tried once what was too slow for create().
  void wait_first(std::chrono::steady_clock::time_point deadline) const;

  /// NVIDIA first, then AMD, then Intel, each in the order of its listing. Never null.
  [[nodiscard]] std::shared_ptr<const Devices> devices() const;
  /// True where there is no GPU and none is waited for.
  [[nodiscard]] bool nothing_here() const;
  /// True when some GPU can have vGPUs.
  [[nodiscard]] bool has_vgpus() const;

  /// The GPUs of a vendor as its library lists them now, where a collector keeps it open. Cheap
  /// where nothing has changed. Not for Intel.
  void observe(Vendor vendor, Devices devices);

  /// Call when a collector is created that maps vGPUs: reads Device::mdevs now and, later, when
  /// refresh_mdevs() asks.
  void want_mdevs();
  /// Asks the worker to read the vGPUs anew, waits at most `patience` for it. For changed VMs.
  void refresh_mdevs(std::chrono::milliseconds patience = std::chrono::milliseconds(20));

  [[nodiscard]] Assignments& assignments() { return assignments_; }

  /// HELP text of the family that several managers share: the first one given (Q-GEN-2: another
  /// text for the same family would lose series).
  std::string shared_help(const std::string& help);

 private:
  using Steady = std::chrono::steady_clock;

  Inventory(InventoryOptions options, os::CommandRunner& runner);

  void run(const std::stop_token& stop);
  void discover(Vendor vendor, Steady::time_point deadline, const std::stop_token& stop);
  void discover_again(const std::set<Vendor>& vendors, const std::stop_token& stop);
  void read_mdevs(Steady::time_point deadline, const std::stop_token& stop);
  void look_at_layout(const std::stop_token& stop);
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
