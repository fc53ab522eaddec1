#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/gpu/claim/process_list.h"
#include "exporter/gpu/inventory/inventory.h"
#include "exporter/gpu/library/gpu_library.h"
#include "exporter/source/slow_source.h"

namespace ceems::exporter::gpu {

/// One reading of all GPUs.
struct Reading {
  Clock::SteadyTime taken{};
  std::vector<DeviceState> devices;  ///< NVIDIA first, then AMD, then Intel
};

struct MonitorOptions {
  std::chrono::milliseconds interval{1000};
  /// Older readings are not served.
  std::chrono::milliseconds max_age{30'000};
  /// How long the destructor waits for a call that is under way.
  std::chrono::milliseconds patience{2000};
  std::chrono::milliseconds first_wait{2000};
};

/// Reads the libraries of GPU vendors by one worker: whatever they do, latest() answers at once. A
/// library that fails is started anew with growing pauses. Thread-safe after start().
class Monitor {
 public:
  /// Every this many readings what changes slowly is read, too.
  static constexpr unsigned kSeldom = 5;

  /// `inventory` may be null: no other part of the program numbers GPUs. `clock` outlives the
  /// object.
  Monitor(MonitorOptions options,
          const Clock& clock,
          std::vector<std::unique_ptr<GpuLibrary>> libraries,
          std::shared_ptr<Inventory> inventory,
          std::shared_ptr<ProcessList> processes);
  /// Waits for a call under way; a library that hangs keeps its thread and what the thread uses,
  /// which only the end of the process frees.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// After privileges were dropped, once.
  void start();
  /// See SlowSource::wait_first().
  void wait_first(std::chrono::steady_clock::time_point deadline);

  /// The last reading, null where there is none that is young enough.
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
