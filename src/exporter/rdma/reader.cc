#include "exporter/rdma/reader.h"

#include "base/log.h"

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

void Counting::set_modes(const std::vector<LinkMode>& modes) {
  for (const LinkMode& mode : modes) {
    links_[mode.link].on = mode.on;
  }
}

Counting::~Counting() {
  for (const auto& [name, link] : links_) {
    if (!link.ours) {
      continue;
    }
    if (const auto done = reader_.set_counting(name, false); !done) {
      log::error("counting of queue pairs by process cannot be turned off",
                 {{"collector", "rdma"}, {"link", name}, {"err", done.error().message}});
    }
  }
}

void Counting::switch_on() {
  for (auto& [name, link] : links_) {
    if (link.on || clock_.steady_now() < link.next) {
      continue;
    }
    const auto done = reader_.set_counting(name, true);
    link.on = done.has_value();
    link.ours = link.on;
    if (done) {
      log::info("queue pairs are counted by process", {{"collector", "rdma"}, {"link", name}});
    } else {
      link.next = clock_.steady_now() + kRetry;
      if (!link.refused) {
        log::error("counting of queue pairs by process cannot be turned on",
                   {{"collector", "rdma"}, {"link", name}, {"err", done.error().message}});
      }
      link.refused = true;
    }
  }
}

Result<std::vector<PortValues>> read_ports(const std::string& sys) {
  CEEMS_TRY(devices, host::read_infiniband(sys));
  std::vector<PortValues> ports;
  for (const host::InfinibandDevice& device : devices) {
    for (const host::InfinibandPort& port : device.ports) {
      PortValues values{device.name, port.number, port.state.value_or(0)};
      for (std::size_t i = 0; i < kPortCounters.size(); ++i) {
        const auto counter = host::read_infiniband_counter(port, kPortCounters.at(i).file);
        const auto value = counter ? *counter : std::nullopt;
        if (value) {
          values.counters.at(i) = *value * kPortCounters.at(i).factor;
        }
      }
      ports.push_back(std::move(values));
    }
  }
  return ports;
}

}  // namespace ceems::exporter::rdma
