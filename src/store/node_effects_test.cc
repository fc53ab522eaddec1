#include "store/node_effects.h"

#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/reports.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kDay = 24 * kHour;

class NodeEffects : public EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    if (db_ != nullptr) {
      write(kNow, kNow + kHour,
            {job("1", kNow, kNow + 10 * kMinute), job("2", kNow, kNow + 20 * kMinute)});
    }
  }
  static ReportRow report(const std::string& uuid, UnitOnNodes on) {
    return {.key = {"hpc", uuid, kNow},
            .ended_at_ts = kNow + (uuid == "1" ? 10 : 20) * kMinute,
            .made_ms = kNow + kHour,
            .on = std::move(on)};
  }
  /// NODE USER FAMILY EFFECT OUTCOME at MINUTES.
  Texts rows(std::int64_t from_ms = 0, const std::string& cluster = "hpc") {
    Texts all;
    const auto found = db_->reader().node_effects(cluster, from_ms);
    EXPECT_TRUE(found);
    for (const NodeEffect& one : *found) {
      all.push_back(fmt::format("{} {} {} {} {} at {}", one.on.node, one.username, one.family,
                                one.on.effect ? fmt::format("{:.6f}", *one.on.effect) : "-",
                                static_cast<int>(one.outcome), (one.ended_ms - kNow) / kMinute));
    }
    return all;
  }
};

TEST_P(NodeEffects, AreStoredWithReportsOnceForEachNodeAndRun) {
  ASSERT_TRUE(db_->writer().store_reports(
      {report("1", {.username = "ada",
                    .family = "train-#",
                    .outcome = NodeOutcome::kNodeFailed,
                    .nodes = {{"n1", 0.0583}, {"n2", -0.1}, {"n3", {}}}}),
       report("2", {}), report("no such unit", {.nodes = {{"n1", 1}}})}));
  EXPECT_THAT(rows(), ElementsAre("n3 ada train-# - 2 at 10", "n2 ada train-# -0.100000 2 at 10",
                                  "n1 ada train-# 0.058300 2 at 10"));
  // The report is made again with more samples.
  ASSERT_TRUE(db_->writer().store_reports({report(
      "1",
      {.username = "ada", .family = "train-#", .nodes = {{"n1", 0.06}, {"n3", 0.5}, {"n1", 7}}})}));
  EXPECT_THAT(rows(),
              ElementsAre("n3 ada train-# 0.500000 0 at 10", "n2 ada train-# -0.100000 2 at 10",
                          "n1 ada train-# 0.060000 0 at 10"));
  EXPECT_THAT(rows(0, "hpc-b"), IsEmpty());
}

TEST_P(NodeEffects, AreReadFromATimeOnTheNewestFirst) {
  ASSERT_TRUE(db_->writer().store_reports(
      {report("1", {.nodes = {{"n1", 0.0}}}), report("2", {.nodes = {{"n1", 0.25}}})}));
  EXPECT_THAT(rows(), ElementsAre("n1   0.250000 0 at 20", "n1   0.000000 0 at 10"));
  EXPECT_THAT(rows(kNow + 10 * kMinute + 1), ElementsAre("n1   0.250000 0 at 20"));
}

TEST_P(NodeEffects, ThatAreNoNumbersAreNotKnown) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(db_->writer().store_reports(
      {report("1", {.username = "a'; DROP TABLE units;--",
                    .family = "\xff",
                    .nodes = {{"n1", std::nan("")}, {"n2", -kInfinite}, {"n'3", 1e9}}})}));
  EXPECT_THAT(rows(), ElementsAre("n2 a'; DROP TABLE units;-- \uFFFD - 0 at 10",
                                  "n1 a'; DROP TABLE units;-- \uFFFD - 0 at 10",
                                  "n'3 a'; DROP TABLE units;-- \uFFFD - 0 at 10"));
}

TEST_P(NodeEffects, ArePurgedWithUnitsAndWithAge) {
  const auto store = [this] {
    ASSERT_TRUE(db_->writer().store_reports(
        {report("1", {.nodes = {{"n1", 0.0}}}), report("2", {.nodes = {{"n1", 0.25}}})}));
  };
  store();
  ASSERT_TRUE(db_->writer().purge(kNow + 15 * kMinute, {}));
  EXPECT_THAT(rows(), ElementsAre("n1   0.250000 0 at 20"));
  ReportRow later = report("2", {});
  later.made_ms = kNow + 20 * kMinute + 90 * kDay;
  ASSERT_TRUE(db_->writer().store_reports({later}));
  EXPECT_THAT(rows(), ElementsAre("n1   0.250000 0 at 20"));
  ++later.made_ms;
  ASSERT_TRUE(db_->writer().store_reports({later}));
  EXPECT_THAT(rows(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(,
                         NodeEffects,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
