#include "exporter/lsf/allocated_units.h"

#include <utility>

namespace ceems::exporter::lsf {

AllocatedUnits::AllocatedUnits(std::shared_ptr<UnitSource> units,
                               std::shared_ptr<Allocations> allocations)
    : units_(std::move(units)), allocations_(std::move(allocations)) {}

Result<std::shared_ptr<const UnitSnapshot>> AllocatedUnits::snapshot(
    std::chrono::milliseconds max_age) {
  CEEMS_TRY(plain, units_->snapshot(max_age));
  return allocate(std::move(plain));
}

Result<std::shared_ptr<const UnitSnapshot>> AllocatedUnits::energy_snapshot(
    std::chrono::milliseconds max_age) {
  CEEMS_TRY(plain, units_->energy_snapshot(max_age));
  return allocate(std::move(plain));
}

std::shared_ptr<const UnitSnapshot> AllocatedUnits::allocate(
    std::shared_ptr<const UnitSnapshot> plain) {
  auto map = allocations_->of(*plain);
  if (map == nullptr) {
    return plain;
  }
  const MutexLock lock(mutex_);
  if (plain == plain_ && map == map_) {
    return result_;
  }
  auto result = std::make_shared<UnitSnapshot>(*plain);
  for (Unit& unit : result->units) {
    const auto found = map->find(unit.uuid);
    if (found != map->end() && found->second.slots > 0) {
      unit.stats.cpus = static_cast<double>(found->second.slots);
      unit.stats.reserved_cpus = unit.stats.cpus;
    }
  }
  plain_ = std::move(plain);
  map_ = std::move(map);
  result_ = std::move(result);
  return result_;
}

}  // namespace ceems::exporter::lsf
