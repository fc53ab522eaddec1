#pragma once

#include <array>
#include <chrono>
#include <map>
#include <string>

#include "host/paths.h"

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

}  // namespace ceems::exporter::gpu
