#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/counter_file.h"
#include "host/cpu_topology.h"
#include "host/paths.h"

namespace ceems::host {

/// How often heat made the processors slow down (`thermal_throttle` of each CPU in sysfs, Intel
/// only). Every CPU of a package counts the events of the package, so one CPU is read for it, and
/// another where that one is offline. For each core, its first CPU is read.
///
/// One file stays open for each package. The files of cores are opened for each read, because large
/// machines have hundreds. Not thread-safe.
class CpuThrottle {
 public:
  struct Package {
    int number = 0;  ///< as the kernel numbers it
    std::uint64_t package_events = 0;
    std::uint64_t core_events = 0;  ///< sum of its cores
  };

  CpuThrottle(const Paths& paths, const CpuTopology& topology);

  /// The packages whose events could be read, ascending. Counts never decrease.
  const std::vector<Package>& read();

 private:
  struct Core {
    std::string path;
    std::uint64_t events = 0;
  };
  struct Source {
    int number = 0;
    std::vector<CounterFile> files;  // of its CPUs; the first that can be read counts
    std::vector<Core> cores;
    std::uint64_t events = 0;
  };
  std::vector<Source> sources_;
  std::vector<Package> packages_;
  std::string buffer_;
};

}  // namespace ceems::host
