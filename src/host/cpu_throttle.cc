#include "host/cpu_throttle.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::host {

CpuThrottle::CpuThrottle(const Paths& paths, const CpuTopology& topology) {
  const std::string root = (paths.sys / "devices/system/cpu").string();
  std::set<int> cores;
  for (const int package : topology.packages) {
    sources_.push_back({.number = package, .files = {}, .cores = {}});
  }
  for (std::size_t cpu = 0; cpu < topology.cpus.size(); ++cpu) {
    const CpuPlace& place = topology.cpus[cpu];
    if (place.socket < 0) {
      continue;
    }
    const std::string folder = fmt::format("{}/cpu{}/thermal_throttle", root, cpu);
    if (!is_directory(folder)) {
      continue;
    }
    Source& source = sources_.at(static_cast<std::size_t>(place.socket));
    source.files.emplace_back(folder + "/package_throttle_count");
    if (cores.insert(place.core).second) {
      source.cores.push_back({.path = folder + "/core_throttle_count"});
    }
  }
  std::erase_if(sources_, [](const Source& source) { return source.files.empty(); });
}

const std::vector<CpuThrottle::Package>& CpuThrottle::read() {
  packages_.clear();
  for (Source& source : sources_) {
    bool known = false;
    for (CounterFile& file : source.files) {
      if (const auto events = file.read()) {
        source.events = std::max(source.events, *events);
        known = true;
        break;
      }
    }
    if (!known) {
      continue;
    }
    Package& package =
        packages_.emplace_back(Package{.number = source.number, .package_events = source.events});
    for (Core& core : source.cores) {
      if (read_file(core.path.c_str(), buffer_, kMaxValueSize)) {
        core.events = std::max(core.events, parse_int(trim(buffer_)).value_or(0));
      }
      package.core_events += core.events;
    }
  }
  return packages_;
}

}  // namespace ceems::host
