#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exporter/energy/meter/device_meters.h"
#include "exporter/gpu/claim/assignments.h"
#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/monitor.h"

namespace ceems::exporter::gpu {

/// A unit that has processes on GPUs.
struct UnitProcess {
  int pid = 0;
  std::string_view manager;
  const Unit* unit = nullptr;
};

/// The processes that the GPUs list and that belong to units, by pid. One pid may be in units of
/// several managers. What it points to belongs to the snapshots.
std::vector<UnitProcess> unit_processes(const std::vector<DeviceState>& devices,
                                        std::span<const energy::ManagerUnits> managers);

/// The assignments whose unit is there; they are made at scrapes only and may tell of one that has
/// ended since. Those of a manager whose units are not known now are kept.
Assignments::List living(const Assignments::List& assignments,
                         std::span<const energy::ManagerUnits> managers);

/// Who has how much of one GPU, and who used how much of it: `holders` and `total_use` of `sample`.
///
/// Sets `utilisation` as well: SM activity of the GPU, of all its instances together, or what the
/// library says.
///
/// - Reserved is what the assignments say; a GPU or instance without one is taken to be reserved
/// for
///   the units that have a process there, in equal parts. Instances weigh by their SMs, out of all
///   SMs of the GPU.
/// - Used is the SM utilisation of the units' processes, where the library knows it; on a split GPU
///   the SM activity of the instance by its SMs. Where nothing is known, or nobody seems to have
///   done anything, it is what is reserved.
void find_holders(const DeviceState& device,
                  const Assignments::List& assignments,
                  std::span<const UnitProcess> processes,
                  energy::DeviceSample& sample);

/// Energy of one GPU from reading to reading: by its counter, else from its power (mean of the
/// power at both ends). A counter that falls, or rises by more than a GPU can use, starts anew.
class DeviceCounter {
 public:
  static constexpr double kMaxWatts = 10'000;
  static constexpr auto kMaxGap = std::chrono::seconds(120);  ///< energy over more is left out

  /// Sets joules, seconds, fresh and the method of `sample`. False: it has no value. Repeating a
  /// reading gives 0 joules in 0 seconds.
  bool advance(const DeviceState& device, Clock::SteadyTime taken, energy::DeviceSample& sample);

 private:
  std::optional<double> joules_;
  std::optional<double> watts_;
  std::optional<Clock::SteadyTime> taken_;
};

/// The GPUs of a monitor for the energy sampler. The sources are named by the uuids of the GPUs.
class DeviceEnergy final : public energy::DeviceMeters {
 public:
  /// `inventory` may be null: nobody knows who holds what.
  DeviceEnergy(std::shared_ptr<Monitor> monitor, std::shared_ptr<Inventory> inventory);

  void read(const energy::MeterContext& context,
            std::span<const energy::ManagerUnits> managers,
            std::vector<energy::DeviceSample>& samples) override;

 private:
  static constexpr std::size_t kMaxCounters = 1024;  // GPUs that ever were there

  const std::shared_ptr<Monitor> monitor_;
  const std::shared_ptr<Inventory> inventory_;
  std::map<std::string, DeviceCounter> counters_;  // by uuid
};

}  // namespace ceems::exporter::gpu
