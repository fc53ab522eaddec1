#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exporter/gpu/library/amd/amd_metrics.h"
#include "exporter/gpu/library/gpu_library.h"

// What AMD's driver tells in sysfs and what both of AMD's libraries lack, or have in structures
// that differ between releases.
namespace ceems::exporter::gpu {

/// The table gpu_metrics of the GPU at this address; nothing where it has none.
std::optional<AmdMetrics> read_amd_metrics(const std::filesystem::path& sys,
                                           const std::optional<PciAddress>& address);

/// Sets the clocks and the traffic of xGMI; the power where it is not known.
void take_amd_metrics(const AmdMetrics& metrics, DeviceState& state);

/// Sets the use of the partitions of a split GPU and, where all are known, that of the GPU as their
/// mean. By the driver's table where it has them, else by `asked`: what the library says of each.
/// Where it has an answer for some only, the answer is that of the whole GPU, as the driver has one
/// file for it: then no partition has one.
void take_partition_use(const std::optional<AmdMetrics>& metrics,
                        const std::vector<std::optional<double>>& asked,
                        std::optional<double>& whole,
                        const std::vector<InstanceState*>& partitions);

/// Serial number of the board, else "0x" and the id of the chip; empty where neither is told.
std::string amd_serial(const std::filesystem::path& sys, const std::optional<PciAddress>& address);

}  // namespace ceems::exporter::gpu
