#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"

// What the libraries of GPU vendors say of GPUs, whoever the vendor is. Values that a library or a
// device does not have are absent; those that cannot be true (negative, not finite, absurdly large)
// are left out by the adaptors, and texts are printable UTF-8.
namespace ceems::exporter::gpu {

/// Bytes moved, as counters or, where the hardware counts nothing, as rates.
struct Traffic {
  std::optional<double> sent_bytes = {};
  std::optional<double> received_bytes = {};
  std::optional<double> sent_bytes_per_second = {};
  std::optional<double> received_bytes_per_second = {};
};

/// How busy the parts of a GPU or instance were since the last reading, each 0...1.
struct Activity {
  std::optional<double> graphics = {};      ///< some engine had work
  std::optional<double> sm_active = {};     ///< SMs with at least one warp
  std::optional<double> sm_occupancy = {};  ///< warps by the most there can be
  std::optional<double> tensor = {};        ///< matrix units, whatever the numbers
  std::optional<double> tensor_dfma = {};   ///< of them FP64
  std::optional<double> tensor_hmma = {};   ///< of them FP16, BF16, TF32, FP8
  std::optional<double> tensor_imma = {};   ///< of them integer
  std::optional<double> fp64 = {};
  std::optional<double> fp32 = {};
  std::optional<double> fp16 = {};
  std::optional<double> dram = {};  ///< memory bandwidth by the most there can be
};

/// A process that uses a GPU.
struct ProcessUse {
  int pid = 0;
  std::optional<double> memory_bytes = {};
  std::optional<double> utilisation = {};          ///< of the SMs, 0...1
  std::optional<std::uint64_t> gpu_instance = {};  ///< absent on a whole GPU
  std::optional<std::uint64_t> compute_instance = {};
};

/// A part of a GPU that is handed out on its own (MIG device, partition).
struct InstanceState {
  std::string index;  ///< label `index`; set by name_devices()
  std::string uuid;
  std::uint64_t number = 0;  ///< place within the GPU, as Instance::number
  std::uint64_t gpu_instance = 0;
  std::uint64_t compute_instance = 0;
  std::uint64_t sm_count = 0;  ///< 0: unknown
  std::optional<double> memory_used_bytes = {};
  std::optional<double> memory_total_bytes = {};
  std::optional<double> utilisation = {};
  Activity activity = {};
};

/// A physical GPU.
struct DeviceState {
  Vendor vendor = Vendor::kNvidia;
  std::string index;           ///< label `index`, empty for a split GPU; set by name_devices()
  std::string uuid;            ///< unique within one reading; label `gpuuuid` after name_devices()
  std::uint64_t sm_count = 0;  ///< SMs or CUs, 0: unknown; set by name_devices()
  std::string name;
  std::optional<PciAddress> address = {};
  std::optional<std::uint64_t> driver_minor = {};  ///< N of /dev/nvidia<N>
  bool split = false;                              ///< handed out by instances only
  bool vgpu = false;                               ///< may have vGPUs

  std::optional<double> power_watts = {};
  std::optional<double> power_limit_watts = {};
  std::optional<double> energy_joules = {};  ///< counter; starts anew with the driver
  std::optional<double> utilisation = {};    ///< part of the time in which it had work, 0...1
  std::optional<double> memory_utilisation = {};
  std::optional<double> memory_used_bytes = {};
  std::optional<double> memory_total_bytes = {};
  std::optional<double> temperature_celsius = {};
  std::optional<double> memory_temperature_celsius = {};
  /// By the name of the clock: "graphics", "sm", "memory", "video".
  std::vector<std::pair<std::string_view, double>> clocks_hertz = {};
  /// All reasons the library knows for clocks below the highest, and whether they apply now.
  std::vector<std::pair<std::string_view, bool>> clock_reasons = {};
  std::optional<double> ecc_corrected = {};
  std::optional<double> ecc_uncorrected = {};
  /// Xid errors since we watch, by their number.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> xids = {};
  Traffic pcie = {};
  Traffic link = {};  ///< NVLink, xGMI or Xe Link; all links together
  Activity activity = {};

  std::vector<InstanceState> instances = {};
  std::vector<ProcessUse> processes = {};
};

/// A vendor's library. Used by one thread at a time; every call may take long or hang, so a worker
/// makes them (monitor.h).
class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;
  [[nodiscard]] virtual Vendor vendor() const = 0;
  /// Starts the library and lists the devices. May be called again after an error.
  virtual Result<> start() = 0;
  /// The devices and their instances without any reading, as they are now. After start().
  virtual std::vector<DeviceState> list() = 0;
  /// Reads all devices. What changes slowly (memory, temperature, clocks, errors, traffic, MIG
  /// layout) is read only where `everything` is set, else it is what it was. An error: none could
  /// be read, start() is due.
  virtual Result<std::vector<DeviceState>> read(bool everything) = 0;
};

/// Names to try for the library of a vendor, the first that loads counts.
std::vector<std::string> library_names(Vendor vendor);

/// The vendor's library, loaded (not started). `path`: load this file; empty: library_names().
/// kNotFound where there is none.
/// `sys` is where sysfs is, for what the library does not tell.
Result<std::unique_ptr<GpuLibrary>> load_library(Vendor vendor,
                                                 const std::string& path,
                                                 const std::filesystem::path& sys = "/sys");

}  // namespace ceems::exporter::gpu
