#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ceems::exporter::gpu {

/// The content of an AMD GPU's file gpu_metrics in sysfs. Values that a revision lacks, or that the
/// GPU marks as unknown by setting all bits, are absent.
struct AmdMetrics {
  std::optional<double> power_watts = {};
  std::optional<double> graphics_clock_hertz = {};  ///< mean of the dies
  std::optional<double> memory_clock_hertz = {};
  std::optional<double> video_clock_hertz = {};  ///< mean of the engines
  /// Bytes of all xGMI links since the driver was loaded.
  std::optional<double> xgmi_read_bytes = {};
  std::optional<double> xgmi_written_bytes = {};
  /// Utilisation of each partition, 0...1, as the mean of its dies. Empty if unknown.
  std::vector<std::optional<double>> partitions = {};
};

/// Parses that file, a table whose header has its size and revision. Supports format 1 with content
/// 3 to 8 (struct gpu_metrics_v1_N of the kernel's amdgpu driver, natural alignment, in the byte
/// order of the machine). Nothing for other formats or a truncated table.
///
/// PCIe is left out: the table has a rate in whole GB/s of both directions together, and reading
/// the driver's counter (pcie_bw) takes a second.
std::optional<AmdMetrics> parse_amd_metrics(std::string_view table);

}  // namespace ceems::exporter::gpu
