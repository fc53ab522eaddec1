#include "fleet/io_storms.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/fleet/shared_nodes.h"

namespace ceems::fleet {
namespace {

using bench::fleet::simulate_storm;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kMinutesOfTest = 60;

/// 7 creates files from minute 30 on for `lasts` minutes. Then `victims` units wait for half of the
/// time.
struct Case {
  Case(std::size_t lasts, std::size_t victims) {
    FileSystemUse quiet{.uuid = "8", .metadata = WindowValues(kMinutesOfTest, 50.0)};
    FileSystemUse loud{.uuid = "7", .metadata = WindowValues(kMinutesOfTest, 20.0)};
    std::fill_n(loud.metadata.begin() + 30, lasts, 2000.0);
    systems.push_back({.name = "scratch", .units = {quiet, loud}});
    for (std::size_t i = 0; i < victims; ++i) {
      WindowValues& stalled = waits.stalled[fmt::format("{}", 20 + i)];
      stalled.resize(kMinutesOfTest);
      std::fill_n(stalled.begin() + 30, lasts, 0.5);
    }
  }
  std::vector<FileSystem> systems;
  Waits waits;
};

TEST(IoStorms, NameTheUnitAndItsVictims) {
  Case storm(12, 5);
  storm.waits.stalled["7"] = storm.waits.stalled["20"];  // waits for itself
  const auto rows = find_io_storms(storm.systems, storm.waits);
  ASSERT_EQ(rows.size(), 1U);
  const IoStorm& row = rows.front();
  EXPECT_EQ(row.file_system + " " + row.uuid, "scratch 7");
  EXPECT_EQ(row.kind, "metadata");
  EXPECT_NEAR(row.share, 2000.0 / 2050, 1e-9);
  EXPECT_DOUBLE_EQ(row.rate, 2000);
  EXPECT_EQ(row.first, 30U);
  EXPECT_EQ(row.windows, 12U);
  EXPECT_THAT(row.victims, ElementsAre("20", "21", "22", "23", "24"));
}

TEST(IoStorms, NeedTenMinutesMostRequestsAndFiveVictims) {
  EXPECT_EQ(find_io_storms(Case(10, 5).systems, Case(10, 5).waits).size(), 1U);
  EXPECT_THAT(find_io_storms(Case(9, 5).systems, Case(9, 5).waits), IsEmpty());
  EXPECT_THAT(find_io_storms(Case(12, 4).systems, Case(12, 4).waits), IsEmpty());
  Case shared(12, 5);
  shared.systems[0].metadata = WindowValues(kMinutesOfTest, 4000.0);  // of units that were not read
  EXPECT_THAT(find_io_storms(shared.systems, shared.waits), IsEmpty());
  Case always(12, 5);
  for (auto& [uuid, stalled] : always.waits.stalled) {
    stalled.assign(kMinutesOfTest, 0.5);
  }
  EXPECT_THAT(find_io_storms(always.systems, always.waits), IsEmpty()) << "they always wait";
  Case slow(12, 5);
  for (auto& unit : slow.systems[0].units) {
    for (auto& rate : unit.metadata) {
      rate = *rate / 1000;
    }
  }
  EXPECT_THAT(find_io_storms(slow.systems, slow.waits), IsEmpty()) << "2 requests a second";
  EXPECT_THAT(find_io_storms({}, {}), IsEmpty());
}

TEST(IoStorms, CountThoseWhoUseTheFileSystem) {
  Case storm(12, 9);
  EXPECT_FALSE(find_io_storms(storm.systems, storm.waits).front().shared);
  storm.waits.users["home"] = {"27", "28"};
  EXPECT_EQ(find_io_storms(storm.systems, storm.waits).front().victims.size(), 9U);
  storm.waits.users["scratch"] = {"7", "8", "20", "22", "24", "26", "28"};
  const auto rows = find_io_storms(storm.systems, storm.waits);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows.front().shared);
  EXPECT_THAT(rows.front().victims, ElementsAre("20", "22", "24", "26", "28"));
  storm.waits.users["scratch"].erase("20");
  EXPECT_THAT(find_io_storms(storm.systems, storm.waits), IsEmpty()) << "four victims";
}

TEST(IoStorms, AreLookedForWhereOneUnitHasMostRequests) {
  EXPECT_THAT(loaded_file_systems(Case(10, 0).systems), ElementsAre("scratch"));
  Case shared(12, 0);
  shared.systems[0].metadata = WindowValues(kMinutesOfTest, 4000.0);
  EXPECT_THAT(loaded_file_systems(shared.systems), IsEmpty());
  EXPECT_THAT(loaded_file_systems({}), IsEmpty());
}

TEST(IoStorms, NameTheCulpritFirstInNineOfTen) {
  std::size_t first = 0;
  std::size_t calm = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto storm = simulate_storm(true, random);
    const auto rows = find_io_storms(storm.systems, storm.waits);
    first += !rows.empty() && rows.front().uuid == storm.at_fault ? 1 : 0;
    const auto none = simulate_storm(false, random);
    calm += find_io_storms(none.systems, none.waits).size();
  }
  EXPECT_GE(first, 18U);
  EXPECT_EQ(calm, 0U);
}

}  // namespace
}  // namespace ceems::fleet
