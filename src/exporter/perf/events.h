#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::exporter::perf {

enum class Group { kHardware, kSoftware, kCache };

/// An event of the kernel (perf_event_open(2)) that has its own series.
struct Event {
  Group group;
  std::string_view profiler;  ///< its name on the command line
  std::uint32_t type;         ///< perf_event_attr::type
  std::uint64_t config;       ///< perf_event_attr::config
  std::string_view series;    ///< name of the metric without "ceems_perf_"
  std::string_view help;
};

/// All events: hardware, software, then cache events, each group in the order of its flag. Static
/// data.
std::span<const Event> all_events();

/// The flags of one group.
struct GroupChoice {
  bool on = false;
  std::vector<std::string> profilers = {};  ///< all if empty or if none is known
};

/// The selected events as indices into all_events(), in order.
std::vector<std::size_t> choose_events(const GroupChoice& hardware_events,
                                       const GroupChoice& software_events,
                                       const GroupChoice& cache_events);

}  // namespace ceems::exporter::perf
