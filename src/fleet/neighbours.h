#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/robust.h"

namespace ceems::fleet {

/// What a unit did on a shared node, minute by minute over the last two hours.
struct NodeUnit {
  std::string uuid;
  WindowValues cpus = {};            ///< CPUs in use
  WindowValues cpi = {};             ///< cycles per instruction
  WindowValues io_stalled = {};      ///< share of the time in which a process waited for I/O
  WindowValues memory_stalled = {};  ///< likewise, for memory
  WindowValues bytes = {};           ///< read and written a second
  WindowValues requests = {};        ///< of files and block devices a second
};

/// A unit that probably slows another one down.
struct Neighbour {
  std::string victim, suspect;
  std::string_view signal;    ///< of the victim: "cpi", "io" or "memory"
  std::string_view activity;  ///< of the suspect: "cpu", "bytes" or "requests"
  double with = 0;            ///< median of the signal while the suspect is active
  double without = 0;         ///< and while it is not
  double correlation = 0;     ///< over the ten minutes in which it was highest
  std::size_t bins_with = 0, bins_without = 0;
  std::size_t times = 0;  ///< how often the suspect began or paused
};

/// The pairs of units of one node for which there is a natural experiment. All of this holds:
/// - the victim's signal is beyond its own running median by 2 robust standard deviations of its
///   changes from minute to minute in 3 of 5 minutes, while it uses 0.25 CPUs (this rule and
///   0.35 are by X. Zhang et al., "CPI2: CPU performance isolation for shared compute
///   clusters", EuroSys 2013);
/// - the suspect's activity correlates with it by 0.35 in the ten minutes up to then;
/// - in at least 5 minutes with and 5 without the suspect the medians differ by 10 %, in favour of
///   the latter, further than chance allows (rank sum), and at least 3 times when the suspect began
///   or paused.
/// The running median follows the phases of the victim, so a suspect that is active for most of
/// half an hour is not found. The signal is CPI where it is known; stalls of CPUs never count,
/// because units make them themselves in a cpuset.
std::vector<Neighbour> find_neighbours(std::span<const NodeUnit> units);

}  // namespace ceems::fleet
