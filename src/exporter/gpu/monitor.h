#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/inventory/inventory.h"
#include "exporter/gpu/library/gpu_library.h"
#include "exporter/source/slow_source.h"

namespace ceems::exporter::gpu {

/// One reading of all GPUs.
struct Reading {
  Clock::SteadyTime taken{};
  std::vector<DeviceState> devices;  ///< NVIDIA first, then AMD, then Intel; lost ones, too
  std::string error = {};            ///< of the libraries that cannot be read now
};

struct MonitorOptions {
  std::chrono::milliseconds interval{1000};
  /// Older readings are not served.
  std::chrono::milliseconds max_age{30'000};
  /// How long the destructor waits for a call in progress.
  std::chrono::milliseconds patience{2000};
  std::chrono::milliseconds first_wait{2000};
};

/// Reads the libraries of GPU vendors in one thread. latest() returns at once, whatever the
/// libraries do. A library that fails, or of which a GPU is lost, is closed and opened again after
/// growing pauses. A GPU that a library no longer lists, or that has no more values, is lost; it
/// keeps its place and its counters until the program ends. Thread-safe after start().
class Monitor {
 public:
  /// Every kSeldom-th reading also reads what changes slowly.
  static constexpr unsigned kSeldom = 5;

  /// `inventory` may be null if no other part of the program numbers GPUs. `clock` must outlive the
  /// object.
  Monitor(MonitorOptions options,
          const Clock& clock,
          std::vector<std::unique_ptr<GpuLibrary>> libraries,
          std::shared_ptr<Inventory> inventory,
          std::shared_ptr<ProcessList> processes);
  /// Waits for a call in progress. If a library hangs, its thread stays with everything the thread
  /// uses until the process ends.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Call it once, after privileges were dropped.
  void start();
  /// See SlowSource::wait_first().
  void wait_first(std::chrono::steady_clock::time_point deadline);

  /// The last reading; null if there is no recent one.
  [[nodiscard]] std::shared_ptr<const Reading> latest() const;
  /// When the last good reading was taken.
  [[nodiscard]] std::optional<Clock::SteadyTime> last_good() const;
  [[nodiscard]] std::string last_error() const;

 private:
  struct Work;
  using Source = SlowSource<std::shared_ptr<const Reading>>;

  const MonitorOptions options_;
  std::shared_ptr<Work> work_;
  std::unique_ptr<Source> source_;
};

}  // namespace ceems::exporter::gpu
