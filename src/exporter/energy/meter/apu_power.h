#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "exporter/energy/meter/meter.h"
#include "host/cpu_topology.h"

namespace ceems::exporter::energy {

/// True for the names of processors and GPUs that are both: AMD Instinct MI300A.
bool is_apu(std::string_view name);

/// An APU has one power, which the meters of its socket and the library of its GPU both show
/// (variorum, issue 590: 131.4 and 132 W). Where both answer, the GPU's counts and the package's
/// does not: the GPU is the device whose energy is split between the jobs on its compute units and
/// those on its cores. Safe for concurrent use.
class ApuPower {
 public:
  /// After this time without the GPU's energy, the package counts again.
  static constexpr auto kSilent = std::chrono::seconds(10);

  void set_topology(host::CpuTopology topology);
  void note_gpus(Clock::SteadyTime now);
  [[nodiscard]] bool gpus_count(Clock::SteadyTime now) const;

  /// `of_unit` is the fraction of the unit's CPUs that are on the APU, and `cpus` how many the APU
  /// has. Without a topology, APUs are alike. `of`: the CPUs of the unit; null for all. `place`
  /// counts APUs in the order of sockets, out of `count`.
  struct Part {
    double of_unit = 0;
    double cpus = 0;
  };
  [[nodiscard]] Part part_of(const std::vector<int>* of,
                             std::size_t place,
                             std::size_t count) const;

 private:
  mutable Mutex mutex_;
  host::CpuTopology topology_ CEEMS_GUARDED_BY(mutex_);
  std::optional<Clock::SteadyTime> gpus_ CEEMS_GUARDED_BY(mutex_);
};

class SocketRails;

/// Who else needs to know what the meters of the host count. Either may be null.
struct SocketParts {
  std::shared_ptr<SocketRails> rails = {};
  std::shared_ptr<ApuPower> apu = {};
};

/// The package meter of an APU, whose readings are marked while the energy of the GPU counts.
class ApuPackageMeter final : public EnergyMeter {
 public:
  ApuPackageMeter(std::shared_ptr<EnergyMeter> meter, std::shared_ptr<const ApuPower> apu)
      : meter_(std::move(meter)), apu_(std::move(apu)) {}

  [[nodiscard]] const SourceInfo& source() const override { return meter_->source(); }
  Result<Reading> read(const MeterContext& context) override;
  [[nodiscard]] std::optional<Rejected> rejected() const override { return meter_->rejected(); }

 private:
  const std::shared_ptr<EnergyMeter> meter_;
  const std::shared_ptr<const ApuPower> apu_;
};

}  // namespace ceems::exporter::energy
