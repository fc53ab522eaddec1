#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::host {

/// One energy zone of the powercap tree (Documentation/power/powercap/powercap.rst).
struct PowercapZone {
  std::string entry;  ///< directory name: "intel-rapl:0", "intel-rapl:0:1", "intel-rapl-mmio:0"
  std::string path;   ///< <sysfs>/class/powercap/<entry>, links not resolved
  std::string name;   ///< "package", "core", "uncore", "dram", "psys", "package-0-die-1"
  int index = 0;      ///< N of "package-N"; else running number per name in entry order
  std::uint64_t max_energy_range_uj = 0;  ///< the counter restarts at 0 behind this value
};

/// Names and numbers of the zones whose `name` files hold these texts, in entry order: "package-1"
/// is
/// ("package", 1); other texts stay whole and get the number behind the last one used for them.
std::vector<std::pair<std::string, int>> number_zones(const std::vector<std::string>& names);

/// Reads the powercap zones below a sysfs root. Descriptors of counters stay open, so the privilege
/// to open them (root only since Linux 5.10) is needed once per zone. Not thread-safe: every
/// consumer has its own.
class Powercap {
 public:
  /// Opens a counter for reading; the caller's way to raise a capability around open().
  using Opener = std::function<Result<UniqueFd>(const char* path)>;

  explicit Powercap(const std::string& sys, Opener opener = {});

  /// Looks for zones again; cheap while the directory holds the same entries. A zone without a
  /// readable `name` or `max_energy_range_uj` (DTPM, control types) is left out. kNoData: the
  /// directory is absent or may not be read.
  Result<> scan();

  /// In entry order, as of the last scan().
  [[nodiscard]] const std::vector<PowercapZone>& zones() const { return zones_; }

  /// The counter of zones()[i] in microjoules, as the hardware has it: it wraps at
  /// max_energy_range_uj. Errors: kPermissionDenied, kNotFound and kUnavailable (zone gone, also
  /// where a module was reloaded: the next call opens again), kParse.
  Result<std::uint64_t> energy_uj(std::size_t zone);

  /// Power limit of zones()[i] in microwatts: of constraints 0 and 1 the one with the larger time
  /// window, 0 where no window can be read. Errors as for a file.
  Result<std::uint64_t> power_limit_uw(std::size_t zone);

 private:
  Result<std::uint64_t> read_number(const std::string& path);

  std::string root_;
  Opener opener_;
  std::vector<std::string> entries_;
  std::vector<PowercapZone> zones_;
  std::vector<UniqueFd> counters_;  ///< one per zone; not valid before the first read
  std::string buffer_;
};

}  // namespace ceems::host
