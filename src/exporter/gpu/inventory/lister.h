#pragma once

#include <array>
#include <chrono>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"
#include "exporter/gpu/inventory/nvidia_smi.h"
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

}  // namespace ceems::exporter::gpu
