#include "exporter/unit/directory_use.h"

#include <map>

#include <gtest/gtest.h>

namespace ceems::exporter {
namespace {

using Shares = std::map<std::uint64_t, double>;

Shares end(DirectoryUse& use, bool usable = true) {
  Shares shares;
  use.end(usable, [&shares](std::uint64_t ended, double seconds) { shares[ended] += seconds; });
  return shares;
}

TEST(DirectoryUse, GivesTheRestToTheUnitsThatEndedByTheTimeTheyWereNotRead) {
  DirectoryUse use;
  use.begin(100);
  EXPECT_TRUE(use.moved());  // nothing is known yet
  EXPECT_EQ(end(use), Shares{});
  use.add_ended(0.5);  // read once before it ended
  use.add_lost({.ended = 7, .unread_seconds = 0.3, .max_cpus = 4});
  use.add_lost({.ended = 8, .unread_seconds = 0.1, .max_cpus = 4});
  use.begin(102);
  use.add_child(1.1);
  const Shares shares = end(use);
  EXPECT_NEAR(shares.at(7), 0.3, 1e-9);
  EXPECT_NEAR(shares.at(8), 0.1, 1e-9);
  use.begin(103);
  EXPECT_EQ(end(use), Shares{});  // each is given once
}

TEST(DirectoryUse, GivesNoMoreThanAllCpusCouldHaveUsed) {
  DirectoryUse use(true);
  use.add_lost({.ended = 1, .unread_seconds = 0.1, .max_cpus = 2});
  use.begin(5);
  EXPECT_NEAR(end(use).at(1), 0.2, 1e-9);
}

TEST(DirectoryUse, GivesNothingThatIsNotKnown) {
  const auto with_one_lost = [](auto&& change, bool usable) {
    DirectoryUse use(true);
    use.begin(1);
    end(use);
    use.add_lost({.ended = 1, .unread_seconds = 1, .max_cpus = 1});
    change(use);
    return end(use, usable);
  };
  EXPECT_EQ(with_one_lost([](DirectoryUse& use) { use.begin(1.5); }, true).size(), 1U);
  EXPECT_EQ(with_one_lost([](DirectoryUse& use) { use.begin(1.5); }, false), Shares{});
  EXPECT_EQ(with_one_lost([](DirectoryUse& use) { use.begin(0.5); }, true), Shares{});  // it fell
  EXPECT_EQ(with_one_lost([](DirectoryUse& use) { use.begin(std::nullopt); }, true), Shares{});
  EXPECT_EQ(with_one_lost(
                [](DirectoryUse& use) {
                  use.begin(1.5);
                  use.leave_out_child();
                },
                true),
            Shares{});
  // The living children used more than the counter shows, because it was read before them.
  EXPECT_EQ(with_one_lost(
                [](DirectoryUse& use) {
                  use.begin(1.5);
                  use.add_child(0.6);
                },
                true),
            Shares{});
}

TEST(DirectoryUse, KeepsTheRestForAUnitThatIsJustBeingRemoved) {
  DirectoryUse use(true);
  use.begin(0.2);
  use.miss_child();
  EXPECT_EQ(end(use), Shares{});
  use.add_lost({.ended = 3, .unread_seconds = 1, .max_cpus = 1});
  use.begin(0.2);
  EXPECT_NEAR(end(use).at(3), 0.2, 1e-9);
}

TEST(DirectoryUse, TakesOverTheUnitsOfADirectoryThatWasRemoved) {
  DirectoryUse child(true);
  child.add_ended(0.1);
  child.add_lost({.ended = 4, .unread_seconds = 1, .max_cpus = 1});
  DirectoryUse use(true);
  use.take_over(child);
  use.begin(0.4);
  EXPECT_NEAR(end(use).at(4), 0.3, 1e-9);
}

TEST(DirectoryUse, IsQuietWhileItsCounterStandsStill) {
  DirectoryUse use;
  EXPECT_FALSE(use.known());
  use.begin(3);
  use.begin(3);
  EXPECT_FALSE(use.moved());
  use.begin_quiet();
  EXPECT_FALSE(use.moved());
  EXPECT_EQ(use.growth(), 0);
  use.begin(3.1);
  EXPECT_TRUE(use.moved());
}

}  // namespace
}  // namespace ceems::exporter
