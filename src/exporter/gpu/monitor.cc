#include "exporter/gpu/monitor.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "exporter/gpu/inventory/device_names.h"
#include "exporter/gpu/inventory/lost.h"
#include "exporter/gpu/reason_seconds.h"

namespace ceems::exporter::gpu {
namespace {

constexpr auto kFirstPause = std::chrono::seconds(5);
constexpr auto kMaxPause = std::chrono::minutes(1);
constexpr unsigned kSilentReadings = 3;  // without a value until a GPU counts as lost

/// The last state of a GPU with a value, and its readings since then.
struct Silence {
  DeviceState spoke = {};
  unsigned readings = 0;
};

/// One library and its state.
struct Watched {
  std::unique_ptr<GpuLibrary> library;
  bool running = false;
  bool listed = false;  // the last read was a full one
  bool failing = false;
  std::string error;
  std::vector<DeviceState> last = {};          // the last reading
  std::map<std::string, Silence> silent = {};  // by uuid
  std::set<std::string> told = {};             // uuids of lost GPUs that were logged
  Clock::SteadyTime next_start{};
  Clock::SteadyTime::duration pause = kFirstPause;
};

/// Records the result of a call. If `alone`, there is no other library, and SlowSource logs the
/// failure.
void report(Watched& watched, const Error* error, bool alone) {
  const bool failing = error != nullptr;
  watched.error = failing ? error->message : std::string();
  if (std::exchange(watched.failing, failing) == failing || alone) {
    return;
  }
  const auto vendor = to_string(watched.library->vendor());
  if (failing) {
    log::warn("library of a GPU vendor fails; retrying periodically",
              {{"vendor", vendor}, {"err", watched.error}});
  } else {
    log::info("library of a GPU vendor works again", {{"vendor", vendor}});
  }
}

bool has_values(const DeviceState& device) {
  return device.power_watts || device.energy_joules || device.utilisation ||
         device.temperature_celsius;
}

ProcessList::List processes_of(const std::vector<DeviceState>& devices) {
  ProcessList::List list;
  for (const DeviceState& device : devices) {
    std::map<std::optional<std::uint64_t>, std::vector<int>> pids;
    for (const ProcessUse& use : device.processes) {
      pids[use.gpu_instance].push_back(use.pid);
    }
    for (auto& [gpu_instance, members] : pids) {
      std::string index = device.index;
      for (const InstanceState& instance : device.instances) {
        if (instance.gpu_instance == gpu_instance) {
          index = instance.index;
          break;
        }
      }
      list.push_back({.vendor = device.vendor,
                      .device_uuid = device.uuid,
                      .index = std::move(index),
                      .gpu_instance = gpu_instance ? std::to_string(*gpu_instance) : std::string(),
                      .pids = std::move(members)});
    }
  }
  return list;
}

}  // namespace

/// Used by the thread. Outlives the monitor if a library hangs.
struct Monitor::Work {
  const Clock& clock;
  std::vector<Watched> libraries;
  std::shared_ptr<Inventory> inventory;
  std::shared_ptr<ProcessList> processes;
  ReasonSeconds reasons;
  unsigned reads = 0;

  Mutex mutex;
  Condition idle;
  bool busy CEEMS_GUARDED_BY(mutex) = false;       // the worker calls a library
  bool closing CEEMS_GUARDED_BY(mutex) = false;    // the destructor has begun
  bool abandoned CEEMS_GUARDED_BY(mutex) = false;  // the destructor has stopped waiting

  /// The time now. Never returns after the destructor of the monitor has stopped waiting, because
  /// the clock may be gone.
  Clock::SteadyTime time() {
    MutexLock lock(mutex);
    idle.wait(lock, [this]() CEEMS_REQUIRES(mutex) { return !abandoned; });
    return clock.steady_now();
  }

  /// Starts the library again later, each time after a longer pause.
  static void restart_later(Watched& watched, Clock::SteadyTime now) {
    watched.running = false;
    watched.next_start = now + watched.pause;
    watched.pause = std::min<Clock::SteadyTime::duration>(2 * watched.pause, kMaxPause);
  }

  /// Calls the library. Nothing if it fails, or while it pauses after a failure.
  std::optional<std::vector<DeviceState>> call(Watched& watched, bool everything) {
    const auto now = time();
    const bool first = !watched.running;
    if (first) {
      if (now < watched.next_start) {
        return std::nullopt;
      }
      const auto started = watched.library->start();
      if (!started) {
        restart_later(watched, now);
        report(watched, &started.error(), alone(watched));
        return std::nullopt;
      }
      watched.running = true;
      watched.next_start = now + watched.pause;
    }
    watched.listed = everything || first;
    auto devices = watched.library->read(watched.listed);
    if (!devices) {
      restart_later(watched, now);
      report(watched, &devices.error(), alone(watched));
      return std::nullopt;
    }
    find_lost(watched, *devices);
    watch_over(watched, *devices, now);
    return *std::move(devices);
  }

  /// If there is neither another library nor a reading, SlowSource logs the failure.
  [[nodiscard]] bool alone(const Watched& watched) const {
    return libraries.size() == 1 && watched.last.empty();
  }

  void find_lost(Watched& watched, std::vector<DeviceState>& devices) const {
    recall(watched.last, devices);
    if (inventory != nullptr && watched.listed) {
      inventory->identify_lost(devices);
    }
    for (DeviceState& device : devices) {
      if (!device.lost.empty()) {
        continue;
      }
      if (has_values(device)) {
        auto& silence = watched.silent[device.uuid];
        const std::optional<double> counter = silence.spoke.energy_joules;
        silence = {.spoke = device};
        if (!device.energy_joules) {  // the reading may have been taken while it fell silent
          silence.spoke.energy_joules = counter;
        }
      } else if (const auto silence = watched.silent.find(device.uuid);
                 silence != watched.silent.end() && ++silence->second.readings >= kSilentReadings) {
        device = as_lost(silence->second.spoke,
                         "none of its values can be read any more; see dmesg of the node");
      }
    }
  }

  /// Logs which GPUs are lost and which have come back. Restarts the library if there are any.
  void watch_over(Watched& watched,
                  const std::vector<DeviceState>& devices,
                  Clock::SteadyTime now) {
    const auto vendor = to_string(watched.library->vendor());
    bool any = false;
    bool all = !devices.empty();
    for (const DeviceState& device : devices) {
      const bool lost = !device.lost.empty();
      any = any || lost;
      all = all && lost;
      if (lost && watched.told.insert(device.uuid).second) {
        log::warn("a GPU does not answer; it keeps its number, and its counters keep their values",
                  {{"vendor", vendor},
                   {"uuid", device.uuid},
                   {"pci_address", device.address ? to_string(*device.address) : std::string()},
                   {"err", device.lost}});
      } else if (!lost && watched.told.erase(device.uuid) > 0) {
        log::info("a GPU answers again", {{"vendor", vendor}, {"uuid", device.uuid}});
      }
    }
    const Error error{ErrorCode::kUnavailable, all ? devices.front().lost : std::string()};
    report(watched, all ? &error : nullptr, false);
    if (!any) {
      watched.pause = kFirstPause;
    } else if (all || now >= watched.next_start) {
      restart_later(watched, now);
      watched.next_start = all ? watched.next_start : now;  // the others are read all the time
    }
  }

  Result<std::shared_ptr<const Reading>> read_all() {
    auto reading = std::make_shared<Reading>();
    const bool everything = reads++ % kSeldom == 0;
    for (Watched& watched : libraries) {
      if (auto devices = call(watched, everything)) {
        watched.last = *devices;
        if (inventory != nullptr && watched.listed) {
          name_devices({}, *devices);
          inventory->observe(watched.library->vendor(),
                             inventory_devices(*devices, watched.library->vendor()));
        }
      } else {
        for (DeviceState& device : watched.last) {
          device = as_lost(device, watched.error);
        }
      }
      if (!watched.error.empty()) {
        reading->error += (reading->error.empty() ? "" : "; ") + watched.error;
      }
      reading->devices.insert(reading->devices.end(), watched.last.begin(), watched.last.end());
    }
    if (reading->devices.empty() && !reading->error.empty()) {
      return fail(ErrorCode::kUnavailable, "{}", reading->error);
    }
    name_devices(inventory == nullptr ? Inventory::Devices{} : *inventory->devices(),
                 reading->devices);
    processes->publish(processes_of(reading->devices));
    reading->taken = time();
    reasons.advance(reading->devices, reading->taken);
    return reading;
  }

  Result<std::shared_ptr<const Reading>> work() {
    {
      const MutexLock lock(mutex);
      if (closing) {
        return fail(ErrorCode::kUnavailable, "the program is ending");
      }
      busy = true;
    }
    auto reading = read_all();
    MutexLock lock(mutex);
    busy = false;
    idle.notify_all();
    // The source must not be used after the destructor has stopped waiting.
    idle.wait(lock, [this]() CEEMS_REQUIRES(mutex) { return !abandoned; });
    return reading;
  }
};

Monitor::Monitor(MonitorOptions options,
                 const Clock& clock,
                 std::vector<std::unique_ptr<GpuLibrary>> libraries,
                 std::shared_ptr<Inventory> inventory,
                 std::shared_ptr<ProcessList> processes)
    : options_(options),
      work_(std::make_shared<Work>(clock,
                                   std::vector<Watched>{},
                                   std::move(inventory),
                                   std::move(processes),
                                   ReasonSeconds(options_.interval))) {
  for (auto& library : libraries) {
    work_->libraries.push_back({.library = std::move(library), .error = {}});
  }
  source_ = std::make_unique<Source>(
      SlowSourceOptions{.collector = "gpu",
                        .source = "gpu",
                        .period = options_.interval,
                        .max_age = options_.max_age,
                        .patience = std::chrono::milliseconds(0),
                        .first_wait = options_.first_wait},
      clock, [work = work_](const std::stop_token&) { return work->work(); });
}

Monitor::~Monitor() {
  bool hangs = false;
  {
    MutexLock lock(work_->mutex);
    work_->closing = true;
    hangs = !work_->idle.wait_for(lock, options_.patience,
                                  [this]() CEEMS_REQUIRES(work_->mutex) { return !work_->busy; });
    work_->abandoned = hangs;
  }
  if (hangs) {
    log::warn("a GPU library does not answer; its thread is left behind", {{"collector", "gpu"}});
    [[maybe_unused]] const Source* left = source_.release();  // its thread uses it
  }
}

void Monitor::start() {
  source_->start();
}

void Monitor::wait_first(std::chrono::steady_clock::time_point deadline) {
  source_->wait_first(deadline);
}

std::shared_ptr<const Reading> Monitor::latest() const {
  const auto value = source_->value();
  return value ? value->value : nullptr;
}

std::optional<Clock::SteadyTime> Monitor::last_good() const {
  return source_->last_good();
}

std::string Monitor::last_error() const {
  return source_->last_error();
}

}  // namespace ceems::exporter::gpu
