#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/library/gpu_library.h"

// Values of AMD's driver in sysfs that both of AMD's libraries lack, or have in structures that
// differ between releases.
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

/// The table gpu_metrics of the GPU at this address. Nothing if it has none.
std::optional<AmdMetrics> read_amd_metrics(const std::filesystem::path& sys,
                                           const std::optional<PciAddress>& address);

/// Sets the clocks and the traffic of xGMI, and the power if it is unknown.
void take_amd_metrics(const AmdMetrics& metrics, DeviceState& state);

/// Sets the use of the partitions of a split GPU and, if all are known, that of the GPU as their
/// mean. The driver's table is used if it has them, otherwise `from_library`, the library's value
/// for each. If the library has values for some partitions only, no partition gets one: the driver
/// has one file for the whole GPU, so that value is the whole GPU's.
void take_partition_use(const std::optional<AmdMetrics>& metrics,
                        const std::vector<std::optional<double>>& from_library,
                        std::optional<double>& whole,
                        const std::vector<InstanceState*>& partitions);

/// Serial number of the board, or "0x" and the id of the chip. Empty if neither is available.
std::string amd_serial(const std::filesystem::path& sys, const std::optional<PciAddress>& address);

}  // namespace ceems::exporter::gpu
