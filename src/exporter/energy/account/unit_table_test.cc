#include "exporter/energy/account/unit_table.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class UnitTableTest : public ::testing::Test {
 protected:
  UnitTableTest() { snapshot_.manager = "slurm"; }

  Unit& unit(const std::string& uuid) {
    for (Unit& known : snapshot_.units) {
      if (known.uuid == uuid) {
        return known;
      }
    }
    Unit& added = snapshot_.units.emplace_back();
    added.uuid = uuid;
    added.stats.reserved_cpus = 4;
    return added;
  }

  void walk() {
    snapshot_.taken = now_;
    snapshot_.wall = wall_;
  }

  void pass(double by) {
    const auto nanoseconds = std::chrono::nanoseconds(static_cast<std::int64_t>(by * 1e9));
    now_ += nanoseconds;
    wall_ += std::chrono::duration_cast<Clock::SystemTime::duration>(nanoseconds);
  }

  void update(bool discovery_works = true) {
    const ManagerUnits units{.manager = "slurm",
                             .snapshot = discovery_works ? &snapshot_ : nullptr};
    table_.update(now_, cpus_online_, {&units, 1},
                  [this](const UnitEntry& entry) { dropped_[entry.uuid] += 1; });
  }

  /// Takes a new snapshot and updates the table.
  void sample() {
    walk();
    update();
  }

  const UnitEntry* find(const std::string& uuid) {
    for (const auto& entry : table_.entries()) {
      if (entry->uuid == uuid) {
        return entry.get();
      }
    }
    return nullptr;
  }

  UnitSnapshot snapshot_;
  UnitTable table_{seconds(600)};
  std::map<std::string, int> dropped_;
  double cpus_online_ = 8;
  Clock::SteadyTime now_{seconds(1000)};
  Clock::SystemTime wall_{seconds(1'767'225'600)};
};

TEST_F(UnitTableTest, TakesTheFirstSnapshotAsBaseline) {
  unit("a").stats.cpu_user_seconds = 1e6;
  sample();
  EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 0);
  EXPECT_DOUBLE_EQ(find("a")->cpus, 4);
  pass(2);
  unit("a").stats.cpu_user_seconds += 3;
  unit("a").stats.cpu_system_seconds += 1;
  sample();
  EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 2);
}

TEST_F(UnitTableTest, CountsAllCpuTimeOfAUnitThatCameInBetween) {
  sample();
  pass(10);
  unit("new").stats.cpu_user_seconds = 5;
  unit("new").started = wall_ - seconds(4);
  sample();
  EXPECT_DOUBLE_EQ(find("new")->busy_cpus, 0.5);
  EXPECT_NEAR(find("new")->presence, 0.4, 1e-6);
  pass(10);
  update();  // no new snapshot: the rate holds for the whole interval
  EXPECT_DOUBLE_EQ(find("new")->busy_cpus, 0.5);
  EXPECT_DOUBLE_EQ(find("new")->presence, 1);
}

TEST_F(UnitTableTest, KeepsABoundedNumberOfEndedUnits) {
  sample();
  pass(1);
  for (std::size_t i = 0; i < UnitTable::kMaxEnded + 10; ++i) {
    Unit& unit = snapshot_.units.emplace_back();
    unit.uuid = std::to_string(i);
    unit.ended = true;
  }
  sample();
  pass(1);
  sample();
  EXPECT_THAT(dropped_, testing::IsEmpty());  // they are still in the snapshots
  snapshot_.units.clear();
  pass(1);
  sample();
  EXPECT_EQ(dropped_.size(), 10U);
  EXPECT_TRUE(dropped_.contains("0"));  // the oldest
  EXPECT_EQ(table_.entries().size(), UnitTable::kMaxEnded);
}

TEST_F(UnitTableTest, CountsAUnitThatCameAndEndedBetweenTwoSnapshots) {
  sample();
  pass(10);
  unit("short").stats.cpu_user_seconds = 6;
  unit("short").started = wall_ - seconds(7);
  unit("short").last_seen = wall_ - seconds(2);
  unit("short").ended = true;
  sample();
  EXPECT_DOUBLE_EQ(find("short")->busy_cpus, 0.6);
  EXPECT_NEAR(find("short")->presence, 0.5, 1e-6);
  EXPECT_EQ(find("short")->ended, now_);
  pass(1);
  sample();
  EXPECT_DOUBLE_EQ(find("short")->busy_cpus, 0);
  EXPECT_DOUBLE_EQ(find("short")->presence, 0);
}

TEST_F(UnitTableTest, IgnoresUnitsThatEndedBeforeTheFirstSnapshot) {
  unit("old").ended = true;
  sample();
  EXPECT_EQ(find("old"), nullptr);
}

TEST_F(UnitTableTest, CountsFromZeroWhenACgroupIsRecreated) {
  unit("a").stats.cpu_user_seconds = 100;
  sample();
  pass(1);
  unit("a").stats.cpu_user_seconds = 0.5;
  sample();
  EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 0.5);
}

TEST_F(UnitTableTest, NeverSeesMoreUseThanCpusOnline) {
  unit("a");
  sample();
  pass(1);
  unit("a").stats.cpu_user_seconds = 1e9;
  sample();
  EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 8);
}

TEST_F(UnitTableTest, SpreadsCpuTimeOverMissedSnapshots) {
  unit("a");
  sample();
  pass(1);
  unit("a").stats.cpu_user_seconds = 1;
  sample();
  for (int i = 0; i < 5; ++i) {
    pass(1);
    update(false);
    EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 1);
  }
  pass(10);
  update(false);
  EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 0);  // held for no more than ten seconds
  EXPECT_EQ(find("a")->ended, std::nullopt);
  pass(5);
  unit("a").stats.cpu_user_seconds += 10;
  sample();
  EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 0.5);
}

TEST_F(UnitTableTest, EndsUnitsThatNoSnapshotHadForTheKeepTime) {
  unit("a");
  sample();
  pass(600);
  update(false);
  EXPECT_NE(find("a"), nullptr);
  pass(1);
  update(false);
  EXPECT_EQ(find("a"), nullptr);
  EXPECT_EQ(dropped_["a"], 1);
}

TEST_F(UnitTableTest, LimitsPresenceWhenTheWallClockJumps) {
  sample();
  pass(1);
  unit("a").started = wall_ + seconds(5000);
  unit("b").started = wall_ - seconds(5000);
  sample();
  EXPECT_DOUBLE_EQ(find("a")->presence, 0);
  EXPECT_DOUBLE_EQ(find("b")->presence, 1);
}

TEST_F(UnitTableTest, TakesReservationsOnlyWhereThereAreAny) {
  unit("a").stats.reserved_cpus = 0;
  unit("a").stats.memory_total_bytes = 1e9;
  unit("a").stats.memory_reserved = false;
  unit("a").stats.memory_used_bytes = 500;
  unit("a").stats.memory_inactive_file_bytes = 200;
  sample();
  EXPECT_DOUBLE_EQ(find("a")->cpus, 0);
  EXPECT_DOUBLE_EQ(find("a")->memory_limit_bytes, 0);
  EXPECT_DOUBLE_EQ(find("a")->memory_used_bytes, 300);
}

class KeptUnitTest : public UnitTableTest {
 protected:
  void end_unit() {
    unit("a");
    sample();
    pass(1);
    snapshot_.units.clear();
    sample();
    ASSERT_NE(find("a"), nullptr);
  }
};

TEST_F(KeptUnitTest, StaysForAMinuteAlsoWhenItWasScraped) {
  end_unit();
  table_.mark_scraped();
  pass(59);
  sample();
  EXPECT_NE(find("a"), nullptr);
  pass(1);
  sample();
  EXPECT_EQ(find("a"), nullptr);
  EXPECT_EQ(dropped_["a"], 1);
}

TEST_F(KeptUnitTest, StaysUntilItWasScraped) {
  end_unit();
  pass(300);
  sample();
  EXPECT_NE(find("a"), nullptr);
  table_.mark_scraped();
  sample();
  EXPECT_EQ(find("a"), nullptr);
}

TEST_F(KeptUnitTest, IsDroppedAfterTheKeepTimeEvenWithoutScrapes) {
  end_unit();
  pass(599);
  sample();
  EXPECT_NE(find("a"), nullptr);
  pass(1);
  sample();
  EXPECT_EQ(find("a"), nullptr);
}

TEST_F(KeptUnitTest, ContinuesItsCountersWhenItComesBack) {
  end_unit();
  const UnitEntry* before = find("a");
  pass(10);
  unit("a").stats.cpu_user_seconds = 2;
  sample();
  EXPECT_EQ(find("a"), before);
  EXPECT_EQ(find("a")->ended, std::nullopt);
  pass(1000);
  sample();
  EXPECT_EQ(find("a"), before);
}

TEST_F(KeptUnitTest, FollowsTheLiveUnitBesideAnEndedOneOfTheSameId) {
  end_unit();
  pass(1);
  unit("a").ended = true;
  Unit live = unit("a");
  live.ended = false;
  live.stats.cpu_user_seconds = 0.25;
  snapshot_.units.push_back(live);
  sample();
  EXPECT_EQ(find("a")->ended, std::nullopt);
  EXPECT_DOUBLE_EQ(find("a")->busy_cpus, 0.25);
}

}  // namespace
}  // namespace ceems::exporter::energy
