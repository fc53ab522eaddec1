#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "exporter/gpu/device.h"

// What the libraries of GPU vendors report, independent of the vendor. Values that a library or a
// device does not have are absent. The adapters drop impossible values (negative, not finite,
// absurdly large), and texts are printable UTF-8.
namespace ceems::exporter::gpu {

inline constexpr std::size_t kMaxDevices = 256;
inline constexpr std::size_t kMaxInstances = 64;  ///< of one GPU
inline constexpr std::size_t kMaxProcesses = 16384;
inline constexpr double kMaxWatts = 100'000;
inline constexpr double kMaxCelsius = 500;
inline constexpr double kMaxBytes = 1e15;
inline constexpr double kMaxHertz = 1e12;

// Libraries may return anything. These functions drop what cannot be true.

/// The value if it is within 0...max.
inline std::optional<double> within(double value, double max) {
  return value >= 0 && value <= max ? std::optional(value) : std::nullopt;
}

/// Converts percent to a fraction. Values slightly above 100 are rounding errors.
inline std::optional<double> from_percent(double percent) {
  return percent >= 0 && percent <= 110 ? std::optional(std::min(percent / 100, 1.0))
                                        : std::nullopt;
}

/// Text in a buffer of a library, which need not end with NUL.
inline std::string text_of(const char* buffer, std::size_t size) {
  const std::string_view text(buffer, strnlen(buffer, size));
  return printable(trim(text), 256);
}

/// A library that is loaded at run time, so that it is required only where it is used. Closed by
/// the destructor; pointers from symbol() are valid until then.
class SharedLibrary {
 public:
  /// Loads the first of `names` that can be loaded. Names are absolute paths, or names for the
  /// dynamic linker to look up. Symbols are bound at once and stay private. kNotFound has the
  /// linker's message for each name.
  static Result<SharedLibrary> open(std::span<const std::string> names);

  /// The name under which it was loaded.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The function of that name, or of its `older` name; null if the library has neither. The type
  /// `Function` cannot be checked.
  template <class Function>
  [[nodiscard]] Function* symbol(const char* name, const char* older = nullptr) const {
    void* const found = address(name);
    // POSIX: the result of dlsym may be used as a pointer to a function.
    return reinterpret_cast<Function*>(found == nullptr && older != nullptr ? address(older)
                                                                            : found);
  }

 private:
  struct Close {
    void operator()(void* handle) const;
  };

  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  [[nodiscard]] void* address(const char* name) const;

  std::unique_ptr<void, Close> handle_;
  std::string name_;
};

/// Calls a function of a library, which may be null. Success is 0 in all of them.
template <class Status, class... Arguments>
bool succeeds(Status (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
  return function != nullptr && function(arguments...) == 0;
}

/// Transferred bytes, as counters or, if the hardware does not count them, as rates.
struct Traffic {
  std::optional<double> sent_bytes = {};
  std::optional<double> received_bytes = {};
  std::optional<double> sent_bytes_per_second = {};
  std::optional<double> received_bytes_per_second = {};
};

/// How busy the parts of a GPU or instance were since the last reading, each 0...1.
struct Activity {
  std::optional<double> graphics = {};      ///< any engine had work
  std::optional<double> sm_active = {};     ///< SMs with at least one warp
  std::optional<double> sm_occupancy = {};  ///< warps divided by their maximum
  std::optional<double> tensor = {};        ///< matrix units, all number formats
  std::optional<double> tensor_dfma = {};   ///< of these FP64
  std::optional<double> tensor_hmma = {};   ///< of these FP16, BF16, TF32, FP8
  std::optional<double> tensor_imma = {};   ///< of these integer
  std::optional<double> fp64 = {};
  std::optional<double> fp32 = {};
  std::optional<double> fp16 = {};
  std::optional<double> dram = {};  ///< memory bandwidth divided by its maximum
};

/// A process that uses a GPU.
struct ProcessUse {
  int pid = 0;
  std::optional<double> memory_bytes = {};
  std::optional<double> utilisation = {};          ///< of the SMs, 0...1
  std::optional<std::uint64_t> gpu_instance = {};  ///< absent on a whole GPU
  std::optional<std::uint64_t> compute_instance = {};
};

/// A part of a GPU that is assigned separately (MIG device, partition).
struct InstanceState {
  std::string index;  ///< label `index`; set by name_devices()
  std::string uuid;
  std::uint64_t number = 0;  ///< number within the GPU, as Instance::number
  std::uint64_t gpu_instance = 0;
  std::uint64_t compute_instance = 0;
  std::uint64_t sm_count = 0;  ///< 0 if unknown
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
  std::string module = {};  ///< the same text for dies that have one meter; empty for most GPUs
  bool mps = false;         ///< shared by a server of MPS, which is not among the processes
  bool split = false;       ///< only its instances are assigned
  bool vgpu = false;        ///< can have vGPUs
  /// Why it does not answer, in words; empty if it does. Its values are absent then, except the
  /// counters, which stay as they were last.
  std::string lost = {};

  std::optional<double> power_watts = {};
  std::optional<double> power_limit_watts = {};
  std::optional<double> energy_joules = {};  ///< counter; restarts with the driver
  std::optional<double> utilisation = {};    ///< fraction of the time in which it had work, 0...1
  /// Mean since the reading before of the time in which a kernel ran, 0...1.
  std::optional<double> busy = {};
  std::optional<double> memory_utilisation = {};
  std::optional<double> memory_used_bytes = {};
  std::optional<double> memory_total_bytes = {};
  std::optional<double> temperature_celsius = {};
  std::optional<double> memory_temperature_celsius = {};
  /// By the name of the clock: "graphics", "sm", "memory", "video".
  std::vector<std::pair<std::string_view, double>> clocks_hertz = {};
  /// All reasons that the library knows for clocks below the maximum, and whether they apply now.
  std::vector<std::pair<std::string_view, bool>> clock_reasons = {};
  /// Counters since the program started, by reason; set by the monitor (reason_seconds.h).
  std::vector<std::pair<std::string_view, double>> clock_reason_seconds = {};
  std::optional<double> ecc_corrected = {};
  std::optional<double> ecc_uncorrected = {};
  /// Xid errors since start(), by number.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> xids = {};
  /// Calls that failed since the program started, by the name of the error. Values that are
  /// not supported do not count.
  std::vector<std::pair<std::string, std::uint64_t>> errors = {};
  Traffic pcie = {};
  Traffic link = {};  ///< NVLink, xGMI or Xe Link; all links together
  Activity activity = {};

  std::vector<InstanceState> instances = {};
  std::vector<ProcessUse> processes = {};
};

/// The state of a GPU that was in `state` when it answered last, and does not now.
DeviceState as_lost(const DeviceState& state, std::string why);

/// A vendor's library. Used by one thread at a time. Every call may take long or hang, so a
/// separate thread makes them (monitor.h).
class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;
  [[nodiscard]] virtual Vendor vendor() const = 0;
  /// Starts the library and lists the devices. May be called again after an error.
  virtual Result<> start() = 0;
  /// The devices and their instances as they are now, without readings. Call it after start().
  virtual std::vector<DeviceState> list() = 0;
  /// Reads all devices. What changes slowly (memory, temperature, clocks, errors, traffic, MIG
  /// layout) is read only if `everything` is set, and otherwise keeps its value. A device that does
  /// not answer is listed as lost. An error means that start() must be called again.
  virtual Result<std::vector<DeviceState>> read(bool everything) = 0;
};

/// Names of a vendor's library, in the order in which to try them.
std::vector<std::string> library_names(Vendor vendor);

/// Loads the vendor's library without starting it: the file `path` or, if that is empty, one of
/// library_names(). kNotFound if there is none. `sys` is where sysfs is mounted, for values that
/// the library does not have.
Result<std::unique_ptr<GpuLibrary>> load_library(Vendor vendor,
                                                 const std::string& path,
                                                 const std::filesystem::path& sys = "/sys");

}  // namespace ceems::exporter::gpu
