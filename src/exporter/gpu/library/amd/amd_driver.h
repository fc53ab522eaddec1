#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exporter/gpu/library/amd/amd_metrics.h"
#include "exporter/gpu/library/gpu_library.h"

// Values of AMD's driver in sysfs that both of AMD's libraries lack, or have in structures that
// differ between releases.
namespace ceems::exporter::gpu {

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
