#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "exporter/unit/stat/stat_reader.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter {

/// What a source remembers of a unit while the unit's directory exists.
struct UnitState {
  Unit unit;
  DirectoryMatch match;
  UnitFiles files;
  std::uint64_t serial = 0;  ///< counts from 1; never reused
  std::string key;           ///< host and uuid; empty until both are known

  Clock::SteadyTime first_seen{};
  Clock::SteadyTime birth{};        ///< creation of the cgroup, as far as known
  Clock::SteadyTime last_alive{};   ///< last time a process was seen in it
  Clock::SteadyTime cpu_read{};     ///< when the CPU times were read last
  Clock::SteadyTime stats_read{};   ///< when all statistics were read last
  Clock::SteadyTime life_read{};    ///< when it was last checked whether it has a process
  Clock::SteadyTime limits_read{};  ///< when its CPUs and limits were read last
  double sampled_seconds = 0;       ///< CPU time at the last sample
  double stats_seconds = -1;        ///< CPU time when all statistics were read last
  bool alive = false;
  bool ever_alive = false;
  bool stale = false;         ///< has had no process since it was found, or for kIdle
  bool reported = false;      ///< its staleness was logged
  bool uuid_pending = false;  ///< shown under its id until its uuid is known
  bool owner_settled = false;
  bool watched = false;  ///< PopulatedWatch waits for its cgroup.events
  bool final = false;    ///< its statistics were read after its last process had ended

  double traffic_bytes = 0;         ///< of the last UnitTraffic
  std::uint64_t traffic_notes = 0;  ///< how many of them there were

  std::string fault;     ///< message of the current read error; empty if there is none
  KeptFile alive_procs;  ///< v1: cgroup.procs of the descendant in which a process was found last
};

/// UnitState::key of a unit.
inline std::string key_of(std::string_view host, std::string_view uuid) {
  std::string key(host);
  key += '\0';
  key += uuid;
  return key;
}

}  // namespace ceems::exporter
