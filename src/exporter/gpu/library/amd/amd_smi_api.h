#pragma once

#include <cstdint>

// The part of the AMD SMI library that is used, declared from its documentation
// (https://rocm.docs.amd.com/projects/amdsmi/). Functions are named amdsmi_ followed by the types
// here in snake case. Structures that differ between releases are not used, or only their first
// members, with room for the rest.
namespace ceems::exporter::gpu::amdsmi {

using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kNotSupported = 2;

using Handle = void*;  // socket, processor

inline constexpr std::uint64_t kInitGpus = 1U << 1U;
inline constexpr int kMemoryVram = 0;
inline constexpr int kTemperatureEdge = 0;
inline constexpr int kTemperatureHotspot = 1;
inline constexpr int kTemperatureVram = 2;
inline constexpr int kTemperatureCurrent = 0;

/// Percent. An unknown value has all bits of 16 or 32 set.
struct EngineUsage {
  std::uint32_t graphics;
  std::uint32_t memory;
  std::uint32_t media;
  std::uint32_t rest[61];
};

struct ErrorCount {
  std::uint64_t correctable;
  std::uint64_t uncorrectable;
  std::uint64_t rest[30];
};

/// The market name is the first member.
struct AsicInfo {
  char name[256];
  std::uint64_t rest[480];
};

extern "C" {
using Init = Status(std::uint64_t flags);
using ShutDown = Status();
/// Called first without an array, then with one.
using GetSocketHandles = Status(std::uint32_t* count, Handle* sockets);
using GetProcessorHandles = Status(Handle socket, std::uint32_t* count, Handle* processors);
/// Like rsmi_dev_pci_id_get; see rocm_smi_api.h.
using GetGpuBdfId = Status(Handle gpu, std::uint64_t* id);
using GetGpuAsicInfo = Status(Handle gpu, AsicInfo* info);
using GetGpuActivity = Status(Handle gpu, EngineUsage* usage);
using GetEnergyCount = Status(Handle gpu,
                              std::uint64_t* count,
                              float* microjoules_each,
                              std::uint64_t* nanoseconds);
/// Used and total memory.
using GetGpuMemory = Status(Handle gpu, int type, std::uint64_t* bytes);
/// Degrees Celsius; thousandths of a degree in the first releases.
using GetTempMetric = Status(Handle gpu, int sensor, int metric, std::int64_t* value);
using GetGpuTotalEccCount = Status(Handle gpu, ErrorCount* errors);
}

}  // namespace ceems::exporter::gpu::amdsmi
