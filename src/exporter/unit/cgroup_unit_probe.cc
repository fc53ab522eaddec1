// Answers to questions about single units.
#include "exporter/unit/cgroup_unit_source.h"

namespace ceems::exporter {

void CgroupUnitSource::probe(std::span<UnitProbe> probes) {
  const MutexLock lock(mutex_);
  for (UnitProbe& probe : probes) {
    const auto known = by_key_.find(key_of(probe.cgrouphostname, probe.uuid));
    if (known == by_key_.end()) {
      continue;
    }
    UnitFiles& files = known->second->files;
    const std::string& path = known->second->unit.path;
    if (probe.memory_above) {
      probe.memory_charged_bytes = reader_.memory_charged(files, path);
      if (probe.memory_charged_bytes > probe.memory_above) {
        probe.memory_held_bytes = reader_.memory_held(files, path);
      }
    }
    if (probe.io) {
      probe.io_bytes = reader_.io_bytes(files, path);
      if (!probe.io_bytes) {
        probe.io_stalled_seconds = reader_.io_stalled_seconds(files, path);
      }
      if (traffic_counted_) {
        probe.traffic_bytes = known->second->traffic_bytes;
      }
      probe.traffic_notes = known->second->traffic_notes;
    }
  }
}

void CgroupUnitSource::note_traffic(std::span<const UnitTraffic> traffic) {
  const MutexLock lock(mutex_);
  traffic_counted_ = true;
  for (const UnitTraffic& unit : traffic) {
    const auto known = by_key_.find(key_of(unit.cgrouphostname, unit.uuid));
    if (known != by_key_.end()) {
      known->second->traffic_bytes = unit.bytes;
      ++known->second->traffic_notes;
    }
  }
}

}  // namespace ceems::exporter
