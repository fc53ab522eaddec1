// Partial readings of single units between full readings.
#include "exporter/unit/stat/stat_files.h"
#include "exporter/unit/stat/stat_reader.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {

using host::CgroupMode;

std::optional<std::uint64_t> StatReader::memory_charged(UnitFiles& files, const std::string& path) {
  const FileText text = text_of(files, File::kMemoryUsed, path, false);
  return text.ok() ? std::optional(value_of(text)) : std::nullopt;
}

std::optional<std::uint64_t> StatReader::memory_held(UnitFiles& files, const std::string& path) {
  const FileText text = text_of(files, File::kMemoryStat, path, false);
  if (!text.ok()) {
    return std::nullopt;
  }
  const auto memory = mount_.mode == CgroupMode::kUnified ? host::parse_memory_stat_v2(text.text)
                                                          : host::parse_memory_stat_v1(text.text);
  return memory ? std::optional(memory->held()) : std::nullopt;
}

std::optional<double> StatReader::io_bytes(UnitFiles& files, const std::string& path) {
  double sum = 0;
  if (mount_.mode == CgroupMode::kUnified) {
    const FileText text = text_of(files, File::kIoBytes, path, true);
    if (!text.ok()) {
      return std::nullopt;
    }
    for (const host::CgroupIo& io : host::parse_io_stat(text.text)) {
      sum += static_cast<double>(io.read_bytes) + static_cast<double>(io.write_bytes);
    }
    return sum;
  }
  // As read_v1_block_io(): the scheduler's file if it holds values. The processes of a job are in
  // the cgroups of its steps, so that of the job alone has nothing. Without any device nothing is
  // known, since newer kernels count only for devices that have a limit.
  bool known = false;
  for (const File file : {File::kCfqBytes, File::kTreeBytes, File::kIoBytes}) {
    const FileText text = text_of(files, file, path, true);
    if (!text.ok()) {
      continue;
    }
    const auto values = host::parse_blkio(text.text);
    if (!values) {
      return std::nullopt;
    }
    known = known || !values->empty();
    for (const host::BlkioValue& value : *values) {
      sum += static_cast<double>(value.value);
    }
    if (!values->empty()) {
      break;
    }
  }
  return known ? std::optional(sum) : std::nullopt;
}

std::optional<double> StatReader::io_stalled_seconds(UnitFiles& files, const std::string& path) {
  const FileText text = text_of(files, File::kIoPressure, path, true);
  if (!text.ok() || text.text.empty()) {
    return std::nullopt;
  }
  const auto pressure = host::parse_pressure(text.text);
  return pressure ? std::optional(static_cast<double>(pressure->some_usec) / kMicroseconds)
                  : std::nullopt;
}

}  // namespace ceems::exporter
