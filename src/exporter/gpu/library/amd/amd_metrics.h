#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ceems::exporter::gpu {

/// What the file gpu_metrics of an AMD GPU in sysfs tells; what a revision lacks, or the GPU marks
/// as unknown by all bits set, is absent.
struct AmdMetrics {
  std::optional<double> power_watts = {};
  std::optional<double> graphics_clock_hertz = {};  ///< mean of the dies
  std::optional<double> memory_clock_hertz = {};
  std::optional<double> video_clock_hertz = {};  ///< mean of the engines
  /// Bytes over all xGMI links since the driver was loaded.
  std::optional<double> xgmi_read_bytes = {};
  std::optional<double> xgmi_written_bytes = {};
  /// Utilisation of each partition, 0...1, the mean of its dies; empty where it is not told.
  std::vector<std::optional<double>> partitions = {};
};

/// Content of that file: a table whose head tells its size and revision. Format 1 of content 3 to 8
/// is understood (struct gpu_metrics_v1_N of the kernel's amdgpu driver, natural alignment, in the
/// byte order of the machine); nothing for another, or for one that is cut short.
///
/// PCIe is left out: the table has a rate in whole GB/s of both directions together, and the
/// driver's own counter (pcie_bw) takes a second for each look.
std::optional<AmdMetrics> parse_amd_metrics(std::string_view table);

}  // namespace ceems::exporter::gpu
