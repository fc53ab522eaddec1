#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "host/paths.h"

namespace ceems::host {

/// The CPU numbers in a list such as "0-3,8" (cpuset(7), List format). Nothing if the list is
/// malformed or has more than 65536 CPUs.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

/// Where a logical CPU sits. Cores are numbered over the whole machine.
struct CpuPlace {
  int socket = -1;  ///< position in CpuTopology::packages; -1: not known or offline
  int core = -1;    ///< -1: not known or offline
};

/// Sockets and cores of the CPUs that are online.
struct CpuTopology {
  std::vector<CpuPlace> cpus;  ///< by CPU number
  std::vector<int> packages;   ///< the kernel's numbers of the sockets, ascending; empty: not known
  std::size_t cores = 0;       ///< one more than the largest CpuPlace::core

  /// The position of a socket by the kernel's number; -1 if there is none.
  [[nodiscard]] int socket_of_package(int package) const;
};

/// Reads `physical_package_id` and `core_cpus_list` or `thread_siblings_list` of each CPU
/// (Documentation/admin-guide/cputopology.rst), or, where these do not exist, "physical id" and
/// "core id" in /proc/cpuinfo. CPUs without either have no place. Never fails: in the worst case
/// nothing is known.
CpuTopology read_cpu_topology(const Paths& paths);

/// The part of read_cpu_topology() that understands the text of /proc/cpuinfo.
CpuTopology parse_cpu_topology(std::string_view cpuinfo);

}  // namespace ceems::host
