#include "exporter/rdma/resources.h"

namespace ceems::exporter::rdma {
namespace {

std::map<std::string, UnitObjects> sum(const std::optional<std::vector<Objects>>& objects,
                                       const std::function<std::string_view(int)>& unit_of) {
  std::map<std::string, UnitObjects> units;
  for (const Objects& held : objects.value_or(std::vector<Objects>())) {
    const std::string_view uuid = unit_of(held.pid);
    if (!uuid.empty()) {
      UnitObjects& unit =
          units.try_emplace(std::string(uuid), UnitObjects{held.device}).first->second;
      unit.count += held.count;
      unit.size += held.size;
    }
  }
  return units;
}

}  // namespace

UnitResources by_unit(const Resources& resources,
                      const std::function<std::string_view(int pid)>& unit_of) {
  UnitResources units{sum(resources.regions, unit_of), sum(resources.queues, unit_of), {}};
  for (const QueuePairs& held : resources.pairs.value_or(std::vector<QueuePairs>())) {
    const std::string_view uuid = unit_of(held.pid);
    if (!uuid.empty()) {
      units.pairs.try_emplace(std::string(uuid), UnitPairs{held.device, held.port})
          .first->second.count += held.count;
    }
  }
  for (const QpCounters& counted : resources.counters.value_or(std::vector<QpCounters>())) {
    const std::string_view uuid = unit_of(counted.pid);
    if (uuid.empty()) {
      continue;
    }
    UnitPairs& unit =
        units.pairs.try_emplace(std::string(uuid), UnitPairs{counted.device, counted.port, 1})
            .first->second;
    for (std::size_t i = 0; i < kQpCounters.size(); ++i) {
      unit.counters[i] += counted.values[i];
    }
  }
  return units;
}

}  // namespace ceems::exporter::rdma
