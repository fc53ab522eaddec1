#pragma once

#include <chrono>
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
#include "base/mutex.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/energy/meter/source_gate.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/monitor.h"
#include "exporter/gpu/shared_power.h"

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
/// Returns whether their use is known: by processes, or by the activity of instances.
bool find_holders(const DeviceState& device,
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
/// at both ends). After a counter has fallen, or risen by more than a GPU can use, that interval is
/// charged by power; the next value shows whether it started again or this one was wrong.
///
/// A counter that stands still while the GPU draws power, or cannot be read, or that shows 0 after
/// it counted, is waited for, so that a slow counter loses nothing: nothing is charged for kStill,
/// then what the power was since it stopped. From then on power counts, until the counter has moved
/// in kTrusted readings in a row; what it counted meanwhile, or catches up with, is left out,
/// because it has been charged.
///
/// Powers pass energy::SourceGate. One that is not believed counts as the last one that was, for
/// kHold, and then by a line through the utilisation and the power of the last minutes, which also
/// stands for a counter where there is no power.
class DeviceCounter {
 public:
  static constexpr double kMaxWatts = 10'000;
  static constexpr double kMaxOfLimit = 4;      ///< times the power limit, where it is known
  static constexpr double kMaxPower = 2;        ///< the same of one reading of power
  static constexpr double kLeastPower = 0.125;  ///< times what the line says without use
  static constexpr auto kStill = std::chrono::seconds(5);
  static constexpr unsigned kTrusted = 3;
  static constexpr auto kMaxGap = std::chrono::seconds(120);  ///< energy of longer gaps is left out
  static constexpr auto kHold = std::chrono::seconds(15);
  /// A line through less, in seconds, stands for nothing.
  static constexpr double kLine = 60;

  /// `name`: of the GPU, for the log.
  explicit DeviceCounter(std::string name = {}) : name_(std::move(name)), gate_(name_) {}
  DeviceCounter(const DeviceCounter&) = delete;
  DeviceCounter& operator=(const DeviceCounter&) = delete;

  /// Sets joules, seconds, fresh and the method of `sample`. False if there is no value. The same
  /// reading again returns 0 joules in 0 seconds.
  bool advance(const DeviceState& device, Clock::SteadyTime taken, energy::DeviceSample& sample);
  /// The counter stands still, and power counts.
  [[nodiscard]] bool stands_still() const { return still_; }
  /// Why its power is not believed.
  [[nodiscard]] std::optional<energy::Doubt> doubt() const { return gate_.doubt(); }

 private:
  struct Amount {
    double joules = 0;
    double seconds = 0;
  };
  /// What an interval took by power or, if not `shown`, by the last one or the line.
  struct ByPower {
    std::optional<double> joules;
    bool shown = false;
  };
  [[nodiscard]] std::optional<double> line_watts(std::optional<double> use, double limit) const;
  ByPower by_power(const DeviceState& device, Clock::SteadyTime taken, double seconds);
  void restart(std::optional<double> shown);
  Amount count(std::optional<double> shown,
               std::optional<double> by_power,
               double seconds,
               double max_watts);

  std::string name_;
  energy::SourceGate gate_;                    // of powers
  energy::PowerLine line_;                     // through utilisation and power
  std::optional<double> joules_;               // that the counter showed last ...
  double waited_ = 0;                          // ... so many seconds ago
  std::optional<double> impossible_;           // what it showed since
  Amount ahead_;                               // that was charged since, because of that
  std::optional<double> watts_;                // the last power that was believed ...
  std::optional<Clock::SteadyTime> believed_;  // ... and when
  std::optional<Clock::SteadyTime> taken_;     // the last reading
  bool still_ = false;
  unsigned moved_ = 0;  // readings in a row, while it is not trusted
  Amount held_;         // by power, since the counter stopped
};

/// Whether the counter of a GPU shows what that of one before it shows, so that one of
/// them has no energy. Dies of one module may (parts_of_module).
bool mirrors(const std::vector<DeviceState>& devices, std::size_t place);

/// The dies of one module, such as the MI250X, have one meter, which only one of them shows. The
/// part of its energy that is a die's: by use, with a base for a die that has no work.
std::vector<double> parts_of_module(std::span<const DeviceState* const> dies);

/// The GPUs of a monitor for the energy sampler. The names of the sources are the uuids of the
/// GPUs. One that does not answer any more is silent, with those that hold it now.
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
  /// Readings for which the counter of a GPU stood still, by uuid. Thread-safe.
  [[nodiscard]] std::map<std::string, std::uint64_t> still_readings() const;
  void set_host(const energy::SocketParts& parts) override { shared_.set_host(parts); }

 private:
  static constexpr std::size_t kMaxCounters = 1024;  // all GPUs ever seen

  bool advance(const std::string& name,
               const DeviceState& device,
               Clock::SteadyTime taken,
               energy::DeviceSample& sample);
  void read(const Reading& reading,
            const Assignments::List& assignments,
            const energy::MeterContext& context,
            std::span<const energy::ManagerUnits> managers,
            std::vector<energy::DeviceSample>& samples);

  const std::shared_ptr<Monitor> monitor_;
  const std::shared_ptr<Inventory> inventory_;
  std::map<std::string, DeviceCounter> counters_;  // by uuid
  /// By uuid, and whether the use is sampled.
  std::map<std::pair<std::string, bool>, DeviceWatts> watts_;
  std::shared_ptr<const Reading> last_;
  std::optional<Clock::SteadyTime> used_;  // the reading of the last read_use()
  mutable Mutex mutex_;
  std::map<std::string, std::uint64_t> still_ CEEMS_GUARDED_BY(mutex_);
  SharedPower shared_;
};

}  // namespace ceems::exporter::gpu
