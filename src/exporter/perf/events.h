#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::exporter::perf {

enum class Group { kHardware, kSoftware, kCache };

/// An event of the kernel (perf_event_open(2)) that has a series of its own.
struct Event {
  Group group;
  std::string_view profiler;  ///< its name on the command line
  std::uint32_t type;         ///< perf_event_attr::type
  std::uint64_t config;       ///< perf_event_attr::config
  std::string_view series;    ///< name of the metric without "ceems_perf_"
  std::string_view help;
};

/// Every event: hardware, software, then cache events, each group in the order of its flag. Lives
/// as long as the program.
std::span<const Event> all_events();

/// What the flags of one group say.
struct GroupChoice {
  bool on = false;
  std::vector<std::string> profilers = {};  ///< empty, or none of them known: all
};

/// The chosen events as positions in all_events(), in order.
std::vector<std::size_t> choose_events(const GroupChoice& hardware_events,
                                       const GroupChoice& software_events,
                                       const GroupChoice& cache_events);

}  // namespace ceems::exporter::perf
