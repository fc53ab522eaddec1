#include "exporter/energy/account/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ceems::exporter::energy {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
/// With less use than this, the CPU times do not show where a unit runs.
constexpr double kLeastBusy = 1e-6;

double fraction(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
}

}  // namespace

std::span<const Claim> Claims::cpus(std::size_t socket) const {
  return std::span(socket_cpus_).subspan(socket * units_, units_);
}

std::span<const Claim> Claims::memory(std::size_t socket) const {
  return std::span(socket_memory_).subspan(socket * units_, units_);
}

double Claims::utilisation(std::size_t socket) const {
  const SocketUse& use = sockets_[socket];
  return use.cores_max > 0 && !std::isnan(utilisation_) ? fraction(use.cores, use.cores_max)
                                                        : kUnknown;
}

double Claims::part(std::size_t socket) const {
  return cpus_online_ > 0 ? fraction(sockets_[socket].cpus, cpus_online_)
                          : 1 / static_cast<double>(sockets_.size());
}

void Claims::take_node(const NodeUse& node) {
  const double busy = node.busy_cpus.value_or(0);
  if (!node.cpus.empty() && !node.sockets.empty()) {
    sockets_.assign(node.sockets.begin(), node.sockets.end());
  } else if (sockets_.size() > 1) {  // known before, so it is only this interval that is not
    for (SocketUse& socket : sockets_) {
      socket.busy = busy * part(static_cast<std::size_t>(&socket - sockets_.data()));
      socket.cores = socket.busy;
    }
  } else {
    sockets_.assign(
        1, {.cpus = node.cpus_online, .busy = busy, .cores = busy, .cores_max = node.cpus_online});
  }
  cores_ = 0;
  cpus_online_ = 0;
  cores_max_ = 0;
  for (const SocketUse& socket : sockets_) {
    cores_ += socket.cores;
    cpus_online_ += socket.cpus;
    cores_max_ += socket.cores_max;
  }
  utilisation_ = node.busy_cpus && cores_max_ > 0 ? fraction(cores_, cores_max_) : kUnknown;
}

/// Where the unit may run, and what these CPUs did.
void Claims::find_places(const UnitEntry& unit, const NodeUse& node) {
  places_.assign(sockets_.size(), Place{});
  bool found = false;
  if (unit.cpu_set != nullptr) {
    for (const int number : *unit.cpu_set) {
      const auto index = static_cast<std::size_t>(number);
      if (index < node.cpus.size() && node.cpus[index].socket >= 0) {
        const CpuUse& cpu = node.cpus[index];
        Place& place = places_[static_cast<std::size_t>(cpu.socket)];
        place.cpus += 1;
        place.busy += cpu.busy;
        place.cores += cpu.cores;
        found = true;
      }
    }
  }
  for (std::size_t i = 0; !found && i < sockets_.size(); ++i) {
    places_[i] = {.cpus = sockets_[i].cpus, .busy = sockets_[i].busy, .cores = sockets_[i].cores};
  }
}

void Claims::take_unit(std::size_t position, const UnitEntry& unit, const NodeUse& node) {
  find_places(unit, node);
  Place all;
  for (const Place& place : places_) {
    all.cpus += place.cpus;
    all.busy += place.busy;
    all.cores += place.cores;
  }
  const bool reserved = unit.cpus > 0;
  // Without a reservation a unit claims what it uses.
  const double cpus = reserved ? unit.cpus * unit.presence : unit.busy_cpus;
  Claim& node_cpus = cpus_[position];
  node_cpus.alloc = fraction(cpus, node.cpus_online);
  node_cpus.use = 0;
  const bool limited =
      unit.memory_limit_bytes > 0 && unit.memory_limit_bytes < node.memory_total_bytes;
  const double bytes = limited ? unit.memory_limit_bytes : unit.memory_used_bytes;
  Claim& node_memory = memory_[position];
  node_memory.alloc = fraction(bytes * unit.presence, node.memory_total_bytes);
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const Place& place = places_[i];
    const double of_cpus = all.cpus > 0 ? place.cpus / all.cpus : part(i);
    const double of_busy = all.busy > kLeastBusy ? place.busy / all.busy : of_cpus;
    const double cores_per_cpu = place.busy > kLeastBusy ? place.cores / place.busy : 1;
    const double of_claim = reserved ? of_cpus : of_busy;
    Claim& socket_cpus = socket_cpus_[i * units_ + position];
    socket_cpus.use = unit.busy_cpus * of_busy * cores_per_cpu;
    socket_cpus.alloc = fraction(cpus * of_claim, sockets_[i].cpus);
    socket_memory_[i * units_ + position] = {
        .alloc = part(i) > 0 ? std::min(1.0, node_memory.alloc * of_claim / part(i)) : 0,
        .use = socket_cpus.use};
    node_cpus.use += socket_cpus.use;
  }
  node_memory.use = node_cpus.use;
}

void Claims::make(std::span<const std::unique_ptr<UnitEntry>> units, const NodeUse& node) {
  units_ = units.size();
  take_node(node);
  cpus_.resize(units_);
  memory_.resize(units_);
  socket_cpus_.resize(units_ * sockets_.size());
  socket_memory_.resize(units_ * sockets_.size());
  for (std::size_t i = 0; i < units_; ++i) {
    take_unit(i, *units[i], node);
  }
}

}  // namespace ceems::exporter::energy
