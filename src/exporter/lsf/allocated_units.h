#pragma once

#include <memory>

#include "base/mutex.h"
#include "exporter/lsf/allocations.h"
#include "exporter/unit/unit_source.h"

namespace ceems::exporter::lsf {

/// The units of another source with the CPUs that LSF allocated to them, because their cgroups do
/// not show these. A job that LSF does not know yet keeps the CPUs of its cpuset.
class AllocatedUnits final : public UnitSource {
 public:
  AllocatedUnits(std::shared_ptr<UnitSource> units, std::shared_ptr<Allocations> allocations);

  [[nodiscard]] std::string_view manager() const override { return units_->manager(); }
  [[nodiscard]] std::string_view controller() const override { return units_->controller(); }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds max_age) override;
  Result<std::shared_ptr<const UnitSnapshot>> energy_snapshot(
      std::chrono::milliseconds max_age) override;
  void want_processes() override { units_->want_processes(); }
  [[nodiscard]] bool has_young() const override { return units_->has_young(); }
  void refresh_young() override { units_->refresh_young(); }
  void mark_exported(const UnitSnapshot& snapshot) override { units_->mark_exported(snapshot); }

 private:
  std::shared_ptr<const UnitSnapshot> allocate(std::shared_ptr<const UnitSnapshot> plain);

  const std::shared_ptr<UnitSource> units_;
  const std::shared_ptr<Allocations> allocations_;

  Mutex mutex_;
  // The last result and what it was made of.
  std::shared_ptr<const UnitSnapshot> plain_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const AllocationMap> map_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const UnitSnapshot> result_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::exporter::lsf
