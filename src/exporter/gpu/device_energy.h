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

/// A process of a unit on a GPU.
struct UnitProcess {
  int pid = 0;
  std::string_view manager;
  const Unit* unit = nullptr;
};

/// The processes on the GPUs that belong to units, by pid. One pid may be in units of several
/// managers. The pointers refer to the snapshots.
std::vector<UnitProcess> unit_processes(const std::vector<DeviceState>& devices,
                                        std::span<const energy::ManagerUnits> managers);

/// The assignments whose unit still exists. Assignments are updated at scrapes only, so their units
/// may have ended since. Assignments of a manager whose units are unknown now are kept.
Assignments::List live_assignments(const Assignments::List& assignments,
                                   std::span<const energy::ManagerUnits> managers);

/// Determines who holds how much of one GPU and who used how much of it: `holders` and `total_use`
/// of `sample`. Also sets `utilisation`: the SM activity of the GPU, or of all its instances
/// together, or the library's value.
///
/// - Reserved is what the assignments say. A GPU or instance without an assignment counts as
///   reserved for the units that have a process there, in equal parts. Instances are weighted by
///   their SMs, out of all SMs of the GPU.
/// - Used is the SM utilisation of the units' processes if the library reports it; on a split GPU,
///   the SM activity of each instance weighted by its SMs. If nothing is known, or no unit seems to
///   have used anything, it equals what is reserved.
void find_holders(const DeviceState& device,
                  const Assignments::List& assignments,
                  std::span<const UnitProcess> processes,
                  energy::DeviceSample& sample);

/// Appends what each unit did on the GPU, or on each of its instances, in the `seconds` since the
/// previous reading.
///
/// - A unit that has a GPU or instance for itself, without another unit's known process on it,
///   is charged with all of its energy. Otherwise its use is what the library
///   reports for its processes, or, where it reports nothing, the fraction that it holds.
/// - `busy` is the fraction of the time in which any kernel ran, as the library measured it last;
///   `sms` is the SM activity and absent where the library has none.
/// - Memory is that of the unit's processes, or all of it if processes are listed without memory
///   and only one unit holds it.
void find_uses(const DeviceState& device,
               const Assignments::List& assignments,
               std::span<const UnitProcess> processes,
               double seconds,
               std::vector<energy::DeviceUse>& uses);

/// Energy of one GPU from reading to reading: by its counter, or from its power (mean of the power
/// at both ends). A counter that falls, or rises by more than a GPU can use, restarts.
class DeviceCounter {
 public:
  static constexpr double kMaxWatts = 10'000;
  static constexpr auto kMaxGap = std::chrono::seconds(120);  ///< energy of longer gaps is left out

  /// Sets joules, seconds, fresh and the method of `sample`. False if there is no value. The same
  /// reading again returns 0 joules in 0 seconds.
  bool advance(const DeviceState& device, Clock::SteadyTime taken, energy::DeviceSample& sample);

 private:
  std::optional<double> joules_;
  std::optional<double> watts_;
  std::optional<Clock::SteadyTime> taken_;
};

/// The GPUs of a monitor for the energy sampler. The names of the sources are the uuids of the
/// GPUs.
class DeviceEnergy final : public energy::DeviceMeters {
 public:
  /// `inventory` may be null; the holders are then unknown.
  DeviceEnergy(std::shared_ptr<Monitor> monitor, std::shared_ptr<Inventory> inventory);

  void read(const energy::MeterContext& context,
            std::span<const energy::ManagerUnits> managers,
            std::vector<energy::DeviceSample>& samples) override;
  /// The time of a gap of more than DeviceCounter::kMaxGap is left out.
  bool read_use(std::span<const energy::ManagerUnits> managers,
                std::vector<energy::DeviceUse>& uses) override;
  [[nodiscard]] std::string models() const override;

 private:
  static constexpr std::size_t kMaxCounters = 1024;  // all GPUs ever seen

  const std::shared_ptr<Monitor> monitor_;
  const std::shared_ptr<Inventory> inventory_;
  std::map<std::string, DeviceCounter> counters_;  // by uuid
  std::optional<Clock::SteadyTime> used_;          // the reading of the last read_use()
};

}  // namespace ceems::exporter::gpu
