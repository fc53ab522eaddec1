#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/unit_watts.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu {

/// Learns how many watts each unit on one GPU draws per part of the GPU that it uses: a kernel that
/// multiplies matrices may draw twice as much as one that waits for memory. When units start, stop
/// or rest, the power of the GPU changes with them; a constant per SM does not do (arXiv
/// 2501.17752). The filter is that of the units on a socket (energy::UnitWatts). Instances count
/// their activity, so that seconds can be compared. The use of processes is sampled by the driver,
/// with an error of a tenth or so in each second, from which the filter would learn more than from
/// what jobs do (errors in variables); over a minute it averages out (bench/RESULTS.md). Not
/// thread-safe.
class DeviceWatts {
 public:
  /// `sampled`: the use is that of processes, not of instances.
  explicit DeviceWatts(bool sampled);

  /// Takes one sample of the GPU, and replaces what units used by the watts that it was worth.
  /// Leaves samples without new energy alone.
  void weigh(energy::DeviceSample& sample);

 private:
  energy::UnitWatts watts_;
  std::map<std::string, std::uint64_t> keys_;  // of the holders, by manager, node and uuid
  std::uint64_t last_key_ = 0;
  std::vector<energy::UnitWatts::Use> uses_;
};

/// Takes out of the energy of GPUs what the meters of the host count, or counts it in place of
/// them:
///
/// - GH200: the counter is that of the module. The GPU has what the module has more than Grace, by
///   the ACPI rails; without a rail of the module, the counter less Grace. While the rails stand
///   still, no source of the host counts, and the counter is taken as it is.
/// - MI300A: the power is that of the socket, and the package does not count (ApuPower). CPU jobs
///   are added to the holders: of the reserved and of the used, kCpuPart goes by cores and the rest
///   by compute units.
///
/// GPUs belong to sockets in the order in which the library first listed them. Used by one thread.
class SharedPower {
 public:
  /// The part of an MI300A's power that its cores take when cores and compute units are equally
  /// busy. An assumption: 3 of its 9 compute dies have cores, and its limits of power are set so.
  static constexpr double kCpuPart = 0.3;

  void set_host(energy::SocketParts parts) { host_ = std::move(parts); }
  /// Corrects joules, method, holders and total_use. `utilisation`: of all CPUs, 0...1.
  void correct(const DeviceState& device,
               std::optional<double> utilisation,
               std::span<const energy::ManagerUnits> managers,
               Clock::SteadyTime now,
               energy::DeviceSample& sample);

 private:
  struct Card {
    std::size_t place = 0;
    std::optional<double> total;  // joules of the GPU or of Grace, up to the last sample
    std::optional<double> total_of_grace;
    double debt = 0;  // joules of Grace that the counter has not shown yet
    std::map<std::string, double> cpu_seconds;  // of units at the last sample, by key
  };

  Card& card_of(const std::string& uuid, std::map<std::string, Card>& cards);
  void take_module(Card& card, energy::DeviceSample& sample) const;
  void add_cpu_jobs(Card& card,
                    std::optional<double> utilisation,
                    std::span<const energy::ManagerUnits> managers,
                    energy::DeviceSample& sample) const;

  energy::SocketParts host_;
  std::map<std::string, Card> modules_;  // by uuid
  std::map<std::string, Card> apus_;
};

}  // namespace ceems::exporter::gpu
