#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"
#include "exporter/gpu/inventory/inventory_options.h"
#include "exporter/gpu/inventory/nvidia_smi.h"
#include "os/command.h"

namespace ceems::exporter::gpu {

/// The GPUs of a vendor, and who listed them.
struct Listing {
  std::vector<Device> devices;
  std::string_view by = "tool";  ///< "library", "tool" or "sysfs"; for the log
};

/// Lists the GPUs of a vendor: by its library first, then by its tool.
///
/// The library is asked by a process of its own, this program run with "list-gpus": one that hangs
/// or crashes takes nothing along, it can be asked before privileges are dropped, and a node whose
/// collector `gpu` is off does not pay for the library's memory.
///
/// What wins where both know something: the library, as it is what the tools themselves ask,
/// numbers GPUs and MIG devices in the same order, and tells driver minors and SM counts. The tool
/// is run where the library is missing, fails, hangs or lists nothing; and always for vGPUs
/// (`nvidia-smi vgpu --query`): their mdev ids are not asked of the library. CU counts, render
/// minors and ids of partitions of AMD GPUs come from sysfs whoever listed them. Two AMD GPUs with
/// the same serial number (boards with two) have it both as uuid by the tool; by the library the
/// second has its PCI address. GPUs of Intel are listed by sysfs alone (intel_sysfs.h), which has
/// their render nodes.
///
/// `runner` outlives the object. Safe for concurrent use.
class Lister {
 public:
  Lister(const InventoryOptions& options, os::CommandRunner& runner)
      : options_(options), runner_(runner) {}

  using Deadline = std::chrono::steady_clock::time_point;

  /// The library gets half of the time at most, so that one that hangs leaves the tool its chance.
  /// The error tells what both said.
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

}  // namespace ceems::exporter::gpu
