#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "exporter/unit/stat/stat_reader.h"

// What the parts of StatReader share; for stat_reader*.cc alone.
namespace ceems::exporter {

inline constexpr double kMicroseconds = 1e6;  // in a second

// Positions in StatReader::roots_.
enum class Root : std::size_t { kActive, kCpuacct, kCpu, kCpuset, kMemory, kBlkio, kRdma };

/// Why a file could not be read; nothing where it was, or is not there.
std::optional<Error> fault_of(const FileText& text, std::string_view path, std::string_view name);
/// The error with the file in front.
Error malformed(Error error, std::string_view path, std::string_view name);

// The order is the index in UnitFiles; v1 and v2 use the same places for what corresponds.
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
};

struct StatReader::FileSpec {
  Root root;
  const char* name;  ///< nullptr: this mode has no such file
};

}  // namespace ceems::exporter
