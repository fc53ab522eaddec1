#include <gtest/gtest.h>

#include "exporter/lsf/allocations.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter::lsf {
namespace {

/// Always the same jobs: 6[1] and 7, each with one CPU in its cpuset.
class TwoJobs final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "lsf"; }
  [[nodiscard]] std::string_view controller() const override { return "cpuacct"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(
      std::chrono::milliseconds /*max_age*/) override {
    auto result = std::make_shared<UnitSnapshot>();
    for (const char* const id : {"6[1]", "7"}) {
      Unit& unit = result->units.emplace_back();
      unit.uuid = id;
      unit.stats.cpus = 1;
    }
    return result;
  }
  void mark_exported(const UnitSnapshot& snapshot) override { exported += snapshot.units.size(); }
  std::size_t exported = 0;
};

TEST(AllocatedUnits, HaveTheCpusThatLsfAllocated) {
  const testing::FakeClock clock;
  AllocationOptions options;
  options.fetch = [](const std::stop_token&) -> Result<AllocationMap> {
    return AllocationMap{{"6[1]", {.slots = 16}}};
  };
  options.times.patience = testing::kPatience;
  auto allocations = std::make_shared<Allocations>(std::move(options), clock);
  auto jobs = std::make_shared<TwoJobs>();
  AllocatedUnits units(jobs, allocations);
  auto snapshot = units.snapshot(std::chrono::milliseconds(0)).value();
  EXPECT_EQ(snapshot->units[0].stats.cpus, 1);  // not known yet
  allocations->start();
  for (const bool energy : {false, true}) {
    snapshot = (energy ? units.energy_snapshot(std::chrono::milliseconds(0))
                       : units.snapshot(std::chrono::milliseconds(0)))
                   .value();
    ASSERT_EQ(snapshot->units.size(), 2U);
    EXPECT_EQ(snapshot->units[0].stats.cpus, 16);
    EXPECT_EQ(snapshot->units[0].stats.reserved_cpus, 16);
    EXPECT_EQ(snapshot->units[1].stats.cpus, 1);  // LSF does not know it
    EXPECT_EQ(snapshot->units[1].stats.reserved_cpus, 0);
  }
  units.mark_exported(*snapshot);
  EXPECT_EQ(jobs->exported, 2U);
  EXPECT_EQ(units.controller(), "cpuacct");
}

}  // namespace
}  // namespace ceems::exporter::lsf
