#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exporter/energy/account/attribution.h"
#include "exporter/energy/account/cpu_use.h"
#include "exporter/energy/account/unit_table.h"

namespace ceems::exporter::energy {

/// What the node did in an interval. Unknown values are absent or 0.
struct NodeUse {
  std::optional<double> busy_cpus;  ///< CPU-seconds per second without idle, iowait and steal
  double cpus_online = 0;
  double memory_total_bytes = 0;
  std::span<const CpuUse> cpus = {};        ///< by CPU number; empty: not known
  std::span<const SocketUse> sockets = {};  ///< of these CPUs
};

/// The claims of all units on CPUs and memory in one interval: for the whole node and for each
/// socket. CPU use is measured in busy cores (CpuUseMeter), or in busy CPUs where single CPUs are
/// not known.
///
/// A unit runs where its cpuset lies, or on all CPUs. How its CPU time is divided among these is
/// not known; it is taken to be in proportion to how busy they are. Its memory is taken to be where
/// its CPUs are.
///
/// Units: fractions of CPUs and memory, busy cores. Source: an assumption, because cgroups count
/// the time of all of their CPUs together.
///
/// make() does not allocate while the number of units stays the same. Not thread-safe.
class Claims {
 public:
  void make(std::span<const std::unique_ptr<UnitEntry>> units, const NodeUse& node);

  /// At least 1: where sockets are not known the node counts as one.
  [[nodiscard]] std::size_t sockets() const { return sockets_.size(); }
  /// On the CPUs of all sockets.
  [[nodiscard]] std::span<const Claim> cpus() const { return cpus_; }
  /// On the CPUs of one socket.
  [[nodiscard]] std::span<const Claim> cpus(std::size_t socket) const;
  /// On memory: the allocation is that of memory, the use is that of the CPUs, because memory draws
  /// power when it is read and written and not because it is full.
  [[nodiscard]] std::span<const Claim> memory() const { return memory_; }
  [[nodiscard]] std::span<const Claim> memory(std::size_t socket) const;
  /// Busy cores of everything.
  [[nodiscard]] double cores() const { return cores_; }
  [[nodiscard]] double cores(std::size_t socket) const { return sockets_[socket].cores; }
  /// The same with all CPUs busy.
  [[nodiscard]] double cores_max() const { return cores_max_; }
  /// Busy fraction of the cores, 0...1; NaN: not known.
  [[nodiscard]] double utilisation() const { return utilisation_; }
  [[nodiscard]] double cores_max(std::size_t socket) const { return sockets_[socket].cores_max; }
  [[nodiscard]] double utilisation(std::size_t socket) const;
  /// The socket's fraction of the CPUs, 0...1.
  [[nodiscard]] double part(std::size_t socket) const;

 private:
  struct Place {
    double cpus = 0;
    double busy = 0;
    double cores = 0;
  };
  void take_node(const NodeUse& node);
  void take_unit(std::size_t position, const UnitEntry& unit, const NodeUse& node);
  void find_places(const UnitEntry& unit, const NodeUse& node);

  std::vector<SocketUse> sockets_;
  double cpus_online_ = 0;
  double cores_ = 0;
  double cores_max_ = 0;
  double utilisation_ = 0;
  std::size_t units_ = 0;
  std::vector<Claim> cpus_;
  std::vector<Claim> memory_;
  std::vector<Claim> socket_cpus_;    // claims on one socket are adjacent
  std::vector<Claim> socket_memory_;  // likewise
  std::vector<Place> places_;         // of one unit, by socket
};

}  // namespace ceems::exporter::energy
