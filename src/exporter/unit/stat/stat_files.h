#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "exporter/unit/stat/stat_reader.h"

// Shared by the parts of StatReader; included by stat_reader*.cc only.
namespace ceems::exporter {

inline constexpr double kMicroseconds = 1e6;  // per second
inline constexpr double kNanoseconds = 1e9;

// Positions in StatReader::roots_.
enum class Root : std::size_t { kActive, kCpuacct, kCpu, kCpuset, kMemory, kBlkio, kRdma };

/// Why a file could not be read; nothing if it was read or does not exist.
std::optional<Error> fault_of(const FileText& text, std::string_view path, std::string_view name);
/// The error with the file's name in front.
Error malformed(Error error, std::string_view path, std::string_view name);

// The values are indices into UnitFiles. Files of v1 and v2 with the same meaning have the same
// index.
enum class StatReader::File : std::size_t {
  kEvents,
  kProcs,
  kCpuStat,
  kCpus,
  kCpuQuota,
  kCpuPeriod,
  kMemoryStat,
  kMemoryUsed,
  kMemoryLimit,
  kMemoryEvents,
  kSwapUsed,
  kSwapLimit,
  kSwapFails,
  kRdma,
  kIoBytes,
  kIoRequests,
  kCfqBytes,
  kCfqRequests,
  kTreeBytes,
  kTreeRequests,
  kOwnCpus,
  kCpuUsage,
  kIoPressure,
};

struct StatReader::FileSpec {
  Root root;
  const char* name;  ///< nullptr if this cgroup version has no such file
};

}  // namespace ceems::exporter
