#pragma once

#include <array>
#include <chrono>
#include <map>
#include <string>

#include "host/paths.h"

namespace ceems::exporter::gpu {

struct InventoryOptions {
  host::Paths paths;
  std::string type;        ///< "": what the PCI bus says; "nvidia", "amd": this one; "nogpu": none
  std::string nvidia_smi;  ///< path; empty: look on search_path
  std::string amd_smi;
  std::string rocm_smi;
  std::string search_path;  ///< PATH of the exporter, and of the tools it runs
  /// This program, to be run with "list-gpus" (library_list.h), with this environment; empty: GPUs
  /// are listed by tools alone.
  std::string own_program = {};
  std::map<std::string, std::string> own_environment = {};
  /// Libraries to load in place of library_names(), by Vendor; empty: those.
  std::array<std::string, 3> libraries = {};
  /// Limits of one listing by the worker, and of the library within it.
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds library_timeout{5000};
  /// Until when the start of the program may wait for library and tools that hang; they get a
  /// moment even if that has passed.
  std::chrono::steady_clock::time_point start_until = std::chrono::steady_clock::time_point::max();
  /// When a vendor's GPUs could not be listed: first pause, doubled up to the longest.
  std::chrono::milliseconds first_retry{10'000};
  std::chrono::milliseconds longest_retry{600'000};
  /// How often the worker looks whether GPUs were split or joined.
  std::chrono::milliseconds watch_period{30'000};
};

}  // namespace ceems::exporter::gpu
