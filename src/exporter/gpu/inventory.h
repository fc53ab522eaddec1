#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/assignments.h"
#include "exporter/gpu/device.h"
#include "host/paths.h"
#include "os/command.h"

namespace ceems::exporter::gpu {

struct InventoryOptions {
  host::Paths paths;
  std::string type;        ///< "": what the PCI bus says; "nvidia", "amd": this one; "nogpu": none
  std::string nvidia_smi;  ///< path; empty: look on search_path
  std::string amd_smi;
  std::string rocm_smi;
  std::string search_path;  ///< PATH of the exporter, and of the tools it runs
  /// Limits of one run of a tool: at the start of the program, and later by the worker.
  std::chrono::milliseconds first_timeout{15'000};
  std::chrono::milliseconds timeout{60'000};
  /// When a vendor's GPUs could not be listed: first pause, doubled up to the longest.
  std::chrono::milliseconds first_retry{10'000};
  std::chrono::milliseconds longest_retry{600'000};
};

/// The GPUs of this node. One for the whole program, shared by all that need them; thread-safe.
///
/// Found once, by create(): PCI devices say which vendors, their tools list the GPUs (spec
/// exporter-units §7). A vendor whose tool is missing or fails is logged and left out; a worker
/// tries again with growing pauses. Where there is no GPU nothing runs.
class Inventory {
 public:
  using Devices = std::vector<Device>;

  /// Lists the GPUs, with the privileges that the program still has; takes at most first_timeout
  /// for each run of a tool. `runner` outlives the object.
  static std::shared_ptr<Inventory> create(InventoryOptions options, os::CommandRunner& runner);
  ~Inventory();
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  /// Starts the worker where there is something for it to do. After privileges were dropped; a
  /// second call does nothing.
  void start();

  /// NVIDIA first, then AMD, then Intel, each in the order of its tool. Never null.
  [[nodiscard]] std::shared_ptr<const Devices> devices() const;
  /// True where there is no GPU and none is waited for.
  [[nodiscard]] bool nothing_here() const;
  /// True when some GPU can have vGPUs.
  [[nodiscard]] bool has_vgpus() const;

  /// The GPUs of a vendor as its library lists them: taken as long as its tool could not list any.
  /// What the tool says later takes their place.
  void offer(Vendor vendor, Devices devices);

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
  Inventory(InventoryOptions options, os::CommandRunner& runner);

  struct Found {
    Devices devices;
    std::string error;  ///< empty: good
  };

  Found list(Vendor vendor, std::chrono::milliseconds timeout, const std::stop_token& stop) const;
  Found list_nvidia(std::chrono::milliseconds timeout, const std::stop_token& stop) const;
  Found list_amd(std::chrono::milliseconds timeout, const std::stop_token& stop) const;
  Result<std::string> run_tool(const std::string& path,
                               std::vector<std::string> arguments,
                               std::chrono::milliseconds timeout,
                               const std::stop_token& stop) const;
  [[nodiscard]] Result<std::string> tool(const std::string& given, const char* name) const;
  void replace(Vendor vendor, Devices found);
  void discover(Vendor vendor, std::chrono::milliseconds timeout, const std::stop_token& stop);
  void read_mdevs(std::chrono::milliseconds timeout, const std::stop_token& stop);
  void run(const std::stop_token& stop);

  const InventoryOptions options_;
  os::CommandRunner& runner_;
  Assignments assignments_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  std::shared_ptr<const Devices> devices_ = std::make_shared<const Devices>();
  std::set<Vendor> failed_;
  std::string mdev_error_;
  std::string help_;
  bool mdevs_wanted_ = false;
  bool refresh_asked_ = false;
  unsigned long refreshes_ = 0;
  bool started_ = false;
  std::jthread worker_;  // last: stops before anything else goes away
};

}  // namespace ceems::exporter::gpu
