#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// The power monitoring counters of HPE Cray EX and Cray XC nodes in <sysfs>/cray/pm_counters. The
/// node controller refreshes them ten times a second ("User Access to Compute Node Power Data" in
/// the documentation of Cray System Management).

/// The content of one counter file: "1360621494 J 1734094386309238 us".
struct CrayReading {
  std::uint64_t value = 0;                    ///< joules, watts or degrees Celsius
  std::optional<std::uint64_t> timestamp_us;  ///< since the epoch, by the controller's clock

  bool operator==(const CrayReading&) const = default;
};

/// Unit and timestamp may be missing. kParse: the first word is not an unsigned number.
Result<CrayReading> parse_cray_reading(std::string_view text);

/// The domain that a file name stands for: "cpu", "cpu0", "memory", "accel3", or "node" for names
/// without such a prefix. Nothing for names without "energy", "power" or "temp".
std::optional<std::string_view> cray_domain(std::string_view file);

/// The file name of a domain's quantity: ("accel0", "energy") is "accel0_energy", and
/// ("node", "energy") is "energy".
std::string cray_file(std::string_view domain, std::string_view quantity);

/// The domains in <sysfs>/cray/pm_counters, in byte order. kNoData: the directory does not exist or
/// may not be read.
Result<std::vector<std::string>> find_cray_domains(const std::string& sys);

/// Reads `quantity` ("energy", "power", "power_cap", "temp") of a domain. Errors: any of
/// read_file(), and kParse.
Result<CrayReading> read_cray_counter(const std::string& sys,
                                      std::string_view domain,
                                      std::string_view quantity);

}  // namespace ceems::host
