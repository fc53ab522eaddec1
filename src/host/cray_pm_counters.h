#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// Power monitoring counters of HPE Cray EX and Cray XC nodes in <sysfs>/cray/pm_counters, which
/// the node controller refreshes ten times a second ("User Access to Compute Node Power Data" in
/// the documentation of Cray System Management).

/// Content of one counter file: "1360621494 J 1734094386309238 us".
struct CrayReading {
  std::uint64_t value = 0;                    ///< joules, watts or degrees Celsius
  std::optional<std::uint64_t> timestamp_us;  ///< since the epoch, by the controller's clock

  bool operator==(const CrayReading&) const = default;
};

/// kParse: the first word is no unsigned number. Unit and time stamp may be missing.
Result<CrayReading> parse_cray_reading(std::string_view text);

/// What a file name says its counters are about: "cpu", "cpu0", "memory", "accel3"; "node" for
/// names without such a prefix. Nothing for names without "energy", "power" or "temp".
std::optional<std::string_view> cray_domain(std::string_view file);

/// Name of a domain's file: ("accel0", "energy") is "accel0_energy", ("node", "energy") is
/// "energy".
std::string cray_file(std::string_view domain, std::string_view quantity);

/// Domains that <sysfs>/cray/pm_counters shows, in byte order. kNoData: the directory is absent or
/// may not be read.
Result<std::vector<std::string>> find_cray_domains(const std::string& sys);

/// Reads `quantity` ("energy", "power", "power_cap", "temp") of a domain. Errors as for a file,
/// kParse.
Result<CrayReading> read_cray_counter(const std::string& sys,
                                      std::string_view domain,
                                      std::string_view quantity);

}  // namespace ceems::host
