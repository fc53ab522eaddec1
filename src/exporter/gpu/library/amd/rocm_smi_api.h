#pragma once

#include <cstddef>
#include <cstdint>

// The part of the ROCm System Management Interface library that is used, declared from its
// documentation (https://rocm.docs.amd.com/projects/rocm_smi_lib/). Functions are named rsmi_
// followed by the types here in snake case. Structures that differ between releases are not used.
namespace ceems::exporter::gpu::rocm {

using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kNotSupported = 2;

inline constexpr int kMemoryVram = 0;
inline constexpr std::uint32_t kSensorEdge = 0;
inline constexpr std::uint32_t kSensorJunction = 1;
inline constexpr std::uint32_t kSensorMemory = 2;
inline constexpr int kTemperatureCurrent = 0;

/// Blocks of the GPU that count memory errors, as one bit each: UMC, SDMA, GFX, MMHUB.
inline constexpr std::uint64_t kEccBlocks[] = {1, 2, 4, 8};

/// Later releases have more members after these. `rest` leaves room for them.
struct ErrorCount {
  std::uint64_t correctable;
  std::uint64_t uncorrectable;
  std::uint64_t rest[14];
};

struct ProcessInfo {
  std::uint32_t pid;
  std::uint32_t pasid;
  std::uint64_t vram_bytes;
  std::uint64_t sdma_microseconds;
  std::uint32_t cu_occupancy;
};
/// A ProcessInfo with room for members of later releases.
struct RoomyProcessInfo {
  ProcessInfo info;
  std::uint64_t rest[12];
};

/// The parts of the id that rsmi_dev_pci_id_get returns.
constexpr std::uint32_t pci_domain(std::uint64_t id) {
  return static_cast<std::uint32_t>(id >> 32U);
}
constexpr std::uint32_t pci_partition(std::uint64_t id) {
  return static_cast<std::uint32_t>((id >> 28U) & 0xfU);
}
constexpr std::uint32_t pci_bus(std::uint64_t id) {
  return static_cast<std::uint32_t>((id >> 8U) & 0xffU);
}
constexpr std::uint32_t pci_device(std::uint64_t id) {
  return static_cast<std::uint32_t>((id >> 3U) & 0x1fU);
}
constexpr std::uint32_t pci_function(std::uint64_t id) {
  return static_cast<std::uint32_t>(id & 7U);
}

extern "C" {
using Init = Status(std::uint64_t flags);
using ShutDown = Status();
using NumMonitorDevices = Status(std::uint32_t* count);
/// PCI id, unique id.
using DevNumberGet = Status(std::uint32_t device, std::uint64_t* value);
/// Serial number.
using DevSerialNumberGet = Status(std::uint32_t device, char* text, std::uint32_t size);
using DevNameGet = Status(std::uint32_t device, char* text, std::size_t size);
using DevPowerGet = Status(std::uint32_t device, std::uint64_t* microwatts, int* type);
/// Average power and power cap.
using DevSensorPowerGet = Status(std::uint32_t device,
                                 std::uint32_t sensor,
                                 std::uint64_t* microwatts);
using DevEnergyCountGet = Status(std::uint32_t device,
                                 std::uint64_t* count,
                                 float* microjoules_each,
                                 std::uint64_t* nanoseconds);
/// Use of the GPU and of its memory.
using DevPercentGet = Status(std::uint32_t device, std::uint32_t* percent);
/// Used and total memory.
using DevMemoryGet = Status(std::uint32_t device, int type, std::uint64_t* bytes);
using DevTempMetricGet = Status(std::uint32_t device,
                                std::uint32_t sensor,
                                int metric,
                                std::int64_t* millidegrees);
using DevEccCountGet = Status(std::uint32_t device, std::uint64_t block, ErrorCount* errors);
using ComputeProcessInfoGet = Status(ProcessInfo* processes, std::uint32_t* count);
using ComputeProcessInfoByDeviceGet = Status(std::uint32_t pid,
                                             std::uint32_t device,
                                             RoomyProcessInfo* process);
}

}  // namespace ceems::exporter::gpu::rocm
