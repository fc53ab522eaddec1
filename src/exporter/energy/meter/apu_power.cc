#include "exporter/energy/meter/apu_power.h"

#include <algorithm>

namespace ceems::exporter::energy {

bool is_apu(std::string_view name) {
  return name.contains("MI300A");
}

void ApuPower::set_topology(host::CpuTopology topology) {
  const MutexLock lock(mutex_);
  topology_ = std::move(topology);
}

void ApuPower::note_gpus(Clock::SteadyTime now) {
  const MutexLock lock(mutex_);
  gpus_ = now;
}

bool ApuPower::gpus_count(Clock::SteadyTime now) const {
  const MutexLock lock(mutex_);
  return gpus_ && now - *gpus_ <= kSilent;
}

ApuPower::Part ApuPower::part_of(const std::vector<int>* of,
                                 std::size_t place,
                                 std::size_t count) const {
  const MutexLock lock(mutex_);
  double here = 0;
  double mine = 0;
  double mine_here = 0;
  for (std::size_t cpu = 0; cpu < topology_.cpus.size(); ++cpu) {
    const bool is_here = topology_.cpus[cpu].socket == static_cast<int>(place);
    const bool is_mine = of == nullptr || std::ranges::binary_search(*of, static_cast<int>(cpu));
    here += is_here ? 1 : 0;
    mine += is_mine ? 1 : 0;
    mine_here += is_here && is_mine ? 1 : 0;
  }
  if (topology_.packages.size() != count) {
    const auto all = static_cast<double>(std::max<std::size_t>(count, 1));
    return {.of_unit = 1 / all, .cpus = static_cast<double>(topology_.cpus.size()) / all};
  }
  return {.of_unit = mine > 0 ? mine_here / mine : 0, .cpus = here};
}

Result<Reading> ApuPackageMeter::read(const MeterContext& context) {
  auto reading = meter_->read(context);
  if (reading) {
    reading->elsewhere = apu_->gpus_count(context.now);
  }
  return reading;
}

}  // namespace ceems::exporter::energy
