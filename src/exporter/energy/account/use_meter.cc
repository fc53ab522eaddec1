#include "exporter/energy/account/use_meter.h"

#include <algorithm>
#include <chrono>

namespace ceems::exporter::energy {
namespace {

// A reading of I/O that is not older than this counts as one at the begin of a span.
constexpr double kFresh = 2;
// How often it is tried again where I/O was not counted.
constexpr double kLookAgain = 30;

GpuUse& gpu_of(std::vector<GpuUse>& gpus, const DeviceUse& use) {
  const auto known = std::find_if(gpus.begin(), gpus.end(), [&](const GpuUse& gpu) {
    return gpu.device == use.device && gpu.instance == use.instance && gpu.index == use.index;
  });
  return known != gpus.end()
             ? *known
             : gpus.emplace_back(
                   GpuUse{.device = use.device, .instance = use.instance, .index = use.index});
}

void add(std::optional<double>& sum, std::optional<double> value, double seconds) {
  if (value) {
    sum = sum.value_or(0) + std::clamp(*value, 0.0, 1.0) * std::max(0.0, seconds);
  }
}

}  // namespace

void UseMeter::take_devices(const Interval& interval,
                            std::span<const std::unique_ptr<UnitEntry>> units) {
  devices_read_ = interval.time;
  for (const auto& unit : units) {
    unit->use.gpu_busy_ = 0;
    unit->use.gpu_unknown_ = false;
  }
  for (const DeviceUse& device : interval.devices) {
    const auto unit = std::find_if(units.begin(), units.end(), [&](const auto& entry) {
      return entry->uuid == device.uuid && entry->manager == device.manager &&
             entry->cgrouphostname == device.cgrouphostname;
    });
    if (unit == units.end()) {
      continue;
    }
    UnitUse& use = (*unit)->use;
    use.gpu_busy_ = std::max(use.gpu_busy_, device.busy.value_or(0));
    use.gpu_unknown_ = use.gpu_unknown_ || !device.busy;
    GpuUse& gpu = gpu_of(use.gpus_, device);
    add(gpu.busy_seconds, device.busy, device.seconds);
    add(gpu.sm_seconds, device.sms, device.seconds);
    if (device.memory_bytes) {
      gpu.memory_peak_bytes = std::max(gpu.memory_peak_bytes.value_or(0), *device.memory_bytes);
    }
  }
}

bool UseMeter::no_gpu_work(const UnitUse& use, const Interval& interval) const {
  const bool known =
      !interval.has_devices || (devices_read_ && interval.time - *devices_read_ <= kGpuAge);
  return known && !use.gpu_unknown_ && use.gpu_busy_ <= 0;
}

void UseMeter::count_cores(UnitUse& use, double cpus, double seconds) {
  constexpr double kApart = 0.95;     // at least so many seconds between two marks
  constexpr double kRounding = 1e-6;  // of the sums of intervals
  use.now_.time += seconds;
  use.now_.cpu += cpus * seconds;
  const std::size_t size = use.marks_.size();
  const auto mark = [&](std::size_t number) -> UnitUse::Mark& {
    return use.marks_.at(number % size);
  };
  if (use.mark_count_ == 0) {
    use.mark_count_ = 1;  // at the start, when both are 0
  }
  if (use.now_.time - mark(use.mark_count_ - 1).time < kApart) {
    return;
  }
  mark(use.mark_count_++) = use.now_;
  const std::size_t first = use.mark_count_ > size ? use.mark_count_ - size : 0;
  for (std::size_t i = use.mark_count_ - 1; i-- > first;) {
    const double length = use.now_.time - mark(i).time;
    if (length >= kMeanSeconds - kRounding) {
      use.cpu_max_ = std::max(use.cpu_max_.value_or(0), (use.now_.cpu - mark(i).cpu) / length);
      return;
    }
  }
}

void UseMeter::take_unit(UnitEntry& unit, const Interval& interval, double seconds) {
  UnitUse& use = unit.use;
  const double cpus = unit.busy_cpus;
  const bool still = cpus <= 0;  // a process that does anything uses CPU time
  bool ask_io = false;
  if (!use.seen_) {
    // What it did before is not known.
    use.seen_ = true;
    ask_io = true;
  } else {
    seconds *= unit.presence;
    count_cores(use, cpus, seconds);
    const double limit =
        std::min(kIdleCores, kIdleCpus * (unit.cpus > 0 ? unit.cpus : interval.cpus_online));
    const bool idle = cpus < limit && no_gpu_work(use, interval);
    use.io_age_ += still && use.idle_seconds_ ? 0 : seconds;
    if (!use.idle_seconds_) {
      ask_io = use.io_age_ >= kLookAgain;
    } else if (idle && still) {
      *use.idle_seconds_ += seconds;
    } else if (idle) {
      use.unsettled_ += seconds;
    }
    ask_io = ask_io || (use.unsettled_ > 0 && (!idle || use.unsettled_ >= kSpan ||
                                               use.io_age_ > use.unsettled_ + kFresh));
  }
  use.unchecked_cpu_ += cpus * seconds;
  const bool ask_memory = use.unchecked_cpu_ >= kMemoryCpu;
  if (ask_io || ask_memory) {
    UnitProbe probe{.cgrouphostname = unit.cgrouphostname, .uuid = unit.uuid, .io = ask_io};
    if (ask_memory) {
      use.unchecked_cpu_ = 0;
      probe.memory_above = std::max(use.charged_bytes_, use.peak_bytes_);
    }
    probes_.push_back(probe);
    probed_.push_back(&unit);
  }
}

void UseMeter::take_answer(UnitUse& use, const UnitProbe& probe) {
  if (probe.memory_held_bytes) {
    use.charged_bytes_ = std::max(use.charged_bytes_, probe.memory_charged_bytes.value_or(0));
    use.peak_bytes_ = std::max(use.peak_bytes_, *probe.memory_held_bytes);
  }
  if (!probe.io) {
    return;
  }
  const double unsettled = use.unsettled_;
  use.unsettled_ = 0;
  use.io_age_ = 0;
  const bool bytes = probe.io_bytes.has_value();
  const std::optional<double> now = bytes ? probe.io_bytes : probe.io_stalled_seconds;
  if (!now) {
    use.io_.reset();
    return;
  }
  use.idle_seconds_ = use.idle_seconds_.value_or(0);
  double idle = 0;
  if (use.io_ && use.io_in_bytes_ == bytes) {
    const double moved = *now - *use.io_;
    idle = moved >= 0 && moved < (bytes ? kIdleBytes : kIdleStall) * unsettled ? unsettled : 0;
  }
  count_idle(use, probe, idle);
  use.io_ = now;
  use.io_in_bytes_ = bytes;
}

/// `seconds` are idle except for traffic, which is known up to the last note.
void UseMeter::count_idle(UnitUse& use, const UnitProbe& probe, double seconds) {
  double& idle = use.idle_seconds_.emplace(use.idle_seconds_.value_or(0));
  if (!probe.traffic_bytes) {
    idle += seconds;
    return;
  }
  if (!use.traffic_) {
    use.traffic_ = probe.traffic_bytes;
    use.traffic_notes_ = probe.traffic_notes;
    return;  // what it moved until now is not known
  }
  if (probe.traffic_notes != use.traffic_notes_) {
    const double moved = *probe.traffic_bytes - *use.traffic_;
    if (moved >= 0 && (moved <= 0 || moved < kIdleBytes * use.unconfirmed_)) {
      idle += use.unconfirmed_;
    } else {
      seconds = 0;  // a part of it may have been moved in these
    }
    use.unconfirmed_ = 0;
    use.traffic_ = probe.traffic_bytes;
    use.traffic_notes_ = probe.traffic_notes;
  }
  use.unconfirmed_ += seconds;
}

void UseMeter::advance(const Interval& interval,
                       std::span<const std::unique_ptr<UnitEntry>> units) {
  const double seconds =
      last_ ? std::max(0.0, std::chrono::duration<double>(interval.time - *last_).count()) : 0;
  last_ = interval.time;
  if (interval.devices_read) {
    take_devices(interval, units);
  }
  for (std::size_t i = 0; i < interval.managers.size(); ++i) {
    if (interval.managers[i].snapshot == nullptr) {
      continue;  // the use of its units is unknown
    }
    probes_.clear();
    probed_.clear();
    for (const auto& unit : units) {
      if (unit->manager == interval.managers[i].manager && !unit->ended) {
        take_unit(*unit, interval, seconds);
      }
    }
    if (probes_.empty()) {
      continue;
    }
    interval.sources[i]->probe(probes_);
    for (std::size_t probe = 0; probe < probes_.size(); ++probe) {
      take_answer(probed_[probe]->use, probes_[probe]);
    }
  }
}

}  // namespace ceems::exporter::energy
