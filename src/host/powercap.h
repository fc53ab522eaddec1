#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "host/counter_file.h"

namespace ceems::host {

/// One energy zone of the powercap tree (Documentation/power/powercap/powercap.rst).
struct PowercapZone {
  std::string entry;  ///< directory name: "intel-rapl:0", "intel-rapl:0:1", "intel-rapl-mmio:0"
  std::string path;   ///< <sysfs>/class/powercap/<entry>, links not resolved
  std::string name;   ///< "package", "core", "uncore", "dram", "psys", "package-0-die-1"
  int index = 0;  ///< N of "package-N"; otherwise zones of the same name are counted in entry order
  std::uint64_t max_energy_range_uj = 0;  ///< the counter restarts at 0 after this value
};

/// Splits the texts of the `name` files, given in entry order, into names and numbers: "package-1"
/// is ("package", 1). Other texts are kept whole and get the next number for that name.
std::vector<std::pair<std::string, int>> number_zones(const std::vector<std::string>& names);

/// Reads the powercap zones below a sysfs root. Only root may open their counters since Linux 5.10.
/// Not thread-safe: each
/// consumer has its own object.
class Powercap {
 public:
  using Opener = CounterFile::Opener;

  explicit Powercap(const std::string& sys, Opener opener = {});

  /// Finds the zones again; cheap while the directory has the same entries. Skips zones without a
  /// readable `name` or `max_energy_range_uj` (DTPM, control types). kNoData: the directory does
  /// not exist or may not be read.
  Result<> scan();

  /// The zones that the last scan() found, in entry order.
  [[nodiscard]] const std::vector<PowercapZone>& zones() const { return zones_; }

  /// The counter of zones()[i] in microjoules, as the hardware counts: it wraps at
  /// max_energy_range_uj. Errors: any of CounterFile::read().
  Result<std::uint64_t> energy_uj(std::size_t zone);

  /// The power limit of zones()[i] in microwatts: that of constraint 0 or 1, whichever has the
  /// longer time window, or of constraint 0 if no window can be read. Errors: any of read_file(),
  /// and kParse.
  Result<std::uint64_t> power_limit_uw(std::size_t zone);

  /// The highest power in microwatts that a constraint of zones()[i] (long term, short term, peak)
  /// is set to or can be set to. Values that cannot be read are left out. kNoData: there is none,
  /// as with AMD's counters.
  Result<std::uint64_t> highest_limit_uw(std::size_t zone);

 private:
  Result<std::uint64_t> read_number(const std::string& path);

  std::string root_;
  Opener opener_;
  std::vector<std::string> entries_;
  std::vector<PowercapZone> zones_;
  std::vector<CounterFile> counters_;  ///< one per zone
  std::string buffer_;
};

}  // namespace ceems::host
