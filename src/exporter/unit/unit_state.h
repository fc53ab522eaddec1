#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "exporter/unit/stat/stat_reader.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter {

/// What a source remembers of a unit while its directory exists.
struct UnitState {
  Unit unit;
  DirectoryMatch match;
  UnitFiles files;
  std::uint64_t serial = 0;  ///< counts from 1, never used twice
  std::string key;           ///< host and uuid; empty until both are settled

  Clock::SteadyTime first_seen{};
  Clock::SteadyTime birth{};       ///< creation of the cgroup, as far as known
  Clock::SteadyTime last_alive{};  ///< last time a process was seen in it
  Clock::SteadyTime cpu_read{};    ///< when the CPU times were read last
  bool alive = false;
  bool ever_alive = false;
  bool stale = false;         ///< no process when first seen, or not for long
  bool reported = false;      ///< its staleness is in the log
  bool uuid_pending = false;  ///< shown under its id until its uuid can be told
  bool owner_settled = false;
  bool watched = false;  ///< its cgroup.events is waited for

  std::string fault;     ///< message of the current read error; empty: none
  KeptFile alive_procs;  ///< v1: cgroup.procs of the descendant where a process was found last
};

}  // namespace ceems::exporter
