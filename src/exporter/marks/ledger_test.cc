#include "exporter/marks/ledger.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::marks {
namespace {

using energy::Domain;

/// A node of 2 CPUs that draws 200 W. Job 1 and job 2 reserve one CPU each, so each is charged with
/// 100 W while it exists.
class Node {
 public:
  Node() : account_(options()) {
    account_.add_source({.name = "rapl-package-0", .domain = Domain::kPackage});
    snapshot_.manager = "slurm";
    add("1");
    add("2");
    sample(0);
  }

  void add(const std::string& uuid) {
    Unit& unit = snapshot_.units.emplace_back();
    unit.uuid = uuid;
    unit.cgroup_id = ++cgroups_;
    unit.stats.reserved_cpus = 1;
    unit.started = wall_;
  }
  Unit& unit(std::string_view uuid) {
    return *std::ranges::find(snapshot_.units, uuid, &Unit::uuid);
  }
  void pass(double seconds) {
    const auto step = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(seconds));
    now_ += step;
    wall_ += step;
  }
  /// The end of an interval of the account.
  void sample() { sample(std::chrono::duration<double>(now_ - sampled_).count()); }

  std::shared_ptr<Ledger::Entry> open(std::string_view uuid) {
    return ledger.open(snapshot_, unit(uuid), now_);
  }
  bool say(Ledger::Entry& entry, std::string_view text) {
    return ledger.take(entry, *parse_message(text), stream, now_);
  }
  [[nodiscard]] Clock::SteadyTime now() const { return now_; }
  [[nodiscard]] double joules(std::string_view uuid) const {
    for (const auto& each : account_.units()) {
      if (each->uuid == uuid) {
        return each->joules(Domain::kNode);
      }
    }
    return -1;
  }
  energy::Account& account() { return account_; }

  Ledger ledger;
  Stream stream;

 private:
  static energy::AccountOptions options() {
    energy::AccountOptions options;
    options.keep_ended = std::chrono::seconds(120);
    options.idle_watts.at(index(Domain::kPackage)) = 200;
    return options;
  }
  void sample(double seconds) {
    snapshot_.taken = now_;
    snapshot_.wall = wall_;
    const std::vector<std::optional<energy::Reading>> readings{
        energy::Reading{.joules = 200 * seconds, .fresh = now_, .idle_watts = {}}};
    const energy::ManagerUnits units{.manager = "slurm", .snapshot = &snapshot_};
    account_.advance({.time = now_,
                      .readings = readings,
                      .node = {.busy_cpus = 1, .cpus_online = 2, .memory_total_bytes = 1e9},
                      .managers = {&units, 1}});
    ledger.advance(account_, now_);
    sampled_ = now_;
  }

  energy::Account account_;
  UnitSnapshot snapshot_;
  std::uint64_t cgroups_ = 0;
  Clock::SteadyTime now_{std::chrono::seconds(1000)};
  Clock::SystemTime wall_{std::chrono::seconds(1'767'225'600)};
  Clock::SteadyTime sampled_ = now_;
};

double joules_of(const Ledger::Entry& entry, std::size_t region = 0) {
  return sum(entry.marks.regions()[region].energy().joules);
}

double balance(const Ledger::Entry& entry) {
  double joules = entry.marks.unmarked_joules();
  for (const auto& region : entry.marks.regions()) {
    joules += region.all_self_joules();
  }
  return joules;
}

TEST(Ledger, TakesTheEnergyOfTheUnitFromTheAccount) {
  Node node;
  node.pass(1);
  node.sample();
  node.pass(0.25);
  const auto entry = node.open("1");
  node.say(*entry, "begin solve");
  for (int i = 0; i < 4; ++i) {
    node.pass(0.75);
    node.sample();
    node.pass(0.25);
  }
  node.say(*entry, "end solve");
  node.pass(0.75);
  node.sample();
  EXPECT_NEAR(joules_of(*entry), 400, 4);
  EXPECT_NEAR(balance(*entry), node.joules("1") - 100, 1e-6);  // marks began after a second
  EXPECT_NEAR(node.joules("1"), 600, 1e-6);
}

TEST(Ledger, KeepsUnitsApart) {
  Node node;
  const auto first = node.open("1");
  const auto second = node.open("2");
  ASSERT_NE(first, second);
  EXPECT_EQ(node.open("1"), first);
  node.say(*first, "begin a");
  node.say(*second, "result step 3");
  node.pass(2);
  node.sample();
  EXPECT_NEAR(joules_of(*first), 200, 1e-6);
  EXPECT_TRUE(first->marks.results().empty());
  EXPECT_TRUE(second->marks.regions().empty());
  EXPECT_NEAR(second->marks.unmarked_joules(), 200, 1e-6);
}

TEST(Ledger, GivesTheEnergyBeforeTheFirstMarkToNoRegion) {
  Node node;
  node.pass(0.5);
  node.add("3");
  node.unit("1").stats.reserved_cpus = 0.5;
  node.unit("2").stats.reserved_cpus = 0.5;
  node.pass(0.1);
  const auto entry = node.open("3");
  node.say(*entry, "begin solve");
  node.pass(0.4);
  node.sample();
  const double first = node.joules("3");
  ASSERT_GT(first, 0);
  EXPECT_NEAR(entry->marks.regions()[0].all_self_joules(), first * 0.8, first * 0.01);
  EXPECT_NEAR(balance(*entry), first, 1e-9);
}

TEST(Ledger, EndsRegionsWithTheUnit) {
  Node node;
  const auto entry = node.open("1");
  node.say(*entry, "begin solve");
  node.pass(2);
  node.sample();
  node.pass(0.5);
  Unit& unit = node.unit("1");
  unit.ended = true;
  unit.last_seen = Clock::SystemTime(std::chrono::milliseconds(1'767'225'602'500));
  node.pass(0.5);
  node.sample();
  node.pass(10);
  node.sample();
  EXPECT_NEAR(entry->marks.regions()[0].seconds, 2.5, 1e-6);
  EXPECT_EQ(entry->marks.regions()[0].count, 1U);
  EXPECT_NEAR(joules_of(*entry), 250, 2.5);
  EXPECT_NEAR(balance(*entry), node.joules("1"), 1e-6);
}

TEST(Ledger, DropsMarksTogetherWithTheEnergyOfTheUnit) {
  Node node;
  const auto entry = node.open("1");
  node.say(*entry, "begin solve");
  node.pass(1);
  node.unit("1").ended = true;
  node.sample();
  EXPECT_FALSE(entry->gone);
  node.account().mark_scraped();
  node.unit("1").uuid = "9";
  node.pass(100);
  node.sample();
  node.account().mark_scraped();
  node.pass(100);
  node.sample();
  EXPECT_TRUE(entry->gone);
  EXPECT_FALSE(node.say(*entry, "begin solve"));
  node.ledger.read([](const Ledger::View& view) { EXPECT_TRUE(view.units.empty()); });
}

TEST(Ledger, EndsRegionsOfARequeuedJob) {
  Node node;
  const auto entry = node.open("1");
  node.say(*entry, "begin solve");
  node.pass(2);
  node.sample();
  node.unit("1").cgroup_id = 77;
  EXPECT_EQ(node.open("1"), entry);
  node.pass(2);
  node.sample();
  EXPECT_NEAR(joules_of(*entry), 200, 1e-6);
  node.say(*entry, "begin solve");
  node.pass(2);
  node.sample();
  EXPECT_NEAR(joules_of(*entry), 400, 1e-6);
}

TEST(Ledger, EndsRegionsOfAnAttachedConnectionOnly) {
  Node node;
  const auto entry = node.open("1");
  node.say(*entry, "begin script");
  node.ledger.close(*entry, node.stream, node.now());
  node.say(*entry, "attach");
  node.say(*entry, "begin solve");
  node.pass(2);
  node.sample();
  node.ledger.close(*entry, node.stream, node.now());
  node.pass(2);
  node.sample();
  EXPECT_NEAR(joules_of(*entry, 0), 400, 1e-6);
  EXPECT_NEAR(joules_of(*entry, 1), 200, 1e-6);
}

TEST(Ledger, CountsWhatItDrops) {
  Node node;
  const auto entry = node.open("1");
  node.say(*entry, "end solve");
  node.say(*entry, "begin solve");
  node.ledger.count_dropped(Drop::kRate, 5);
  node.ledger.read([](const Ledger::View& view) {
    EXPECT_EQ(view.taken, 2U);
    EXPECT_EQ(view.dropped.at(static_cast<std::size_t>(Drop::kUnmatched)), 1U);
    EXPECT_EQ(view.dropped.at(static_cast<std::size_t>(Drop::kRate)), 5U);
    EXPECT_TRUE(view.known.at(index(Domain::kPackage)));
    EXPECT_FALSE(view.known.at(index(Domain::kGpu)));
  });
}

TEST(Ledger, ForgetsUnitsThatTheAccountDoesNotKnow) {
  Node node;
  UnitSnapshot other;
  other.manager = "k8s";
  Unit unit;
  unit.uuid = "pod";
  const auto entry = node.ledger.open(other, unit, node.now());
  node.pass(30);
  node.sample();
  EXPECT_FALSE(entry->gone);
  node.pass(31);
  node.sample();
  EXPECT_TRUE(entry->gone);
}

TEST(Ledger, HasALimitOfUnits) {
  Node node;
  UnitSnapshot snapshot;
  snapshot.manager = "cgroup";
  Unit unit;
  for (std::size_t i = 0; i < Ledger::kMaxUnits; ++i) {
    unit.uuid = std::to_string(i);
    ASSERT_NE(node.ledger.open(snapshot, unit, node.now()), nullptr);
  }
  unit.uuid = "more";
  EXPECT_EQ(node.ledger.open(snapshot, unit, node.now()), nullptr);
}

}  // namespace
}  // namespace ceems::exporter::marks
