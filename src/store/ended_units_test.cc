#include "store/ended_units.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/fields.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndedUnitsTest : public EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    if (IsSkipped()) {
      return;
    }
    auto opened = db_->open_targets();
    ASSERT_TRUE(opened) << opened.error().message;
    targets_ = std::move(*opened);
  }
  void TearDown() override { targets_.reset(); }

  void set(const Texts& names) {
    const auto done = targets_->set(names);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::int64_t position(const std::string& name) { return targets_->position(name).value_or(-1); }
  /// The ids of the units behind a place, or the message of the error.
  [[nodiscard]] Texts behind(std::int64_t place, std::size_t limit = 100) const {
    const std::size_t uuid = find_field(unit_fields(), "uuid").value();
    return column(db_->reader().ended_units(place, limit, std::span(&uuid, 1)), 0);
  }
  [[nodiscard]] Texts places(std::int64_t place) const {
    const std::size_t uuid = find_field(unit_fields(), "uuid").value();
    return column(db_->reader().ended_units(place, 100, std::span(&uuid, 1)), 1);
  }

  std::unique_ptr<ExportTargets> targets_;
};

TEST_P(EndedUnitsTest, AreInTheOrderInWhichTheirEndsBecameKnown) {
  write(kNow, kNow + kHour, {job("before", kNow, kNow + 1)});  // no target yet
  set({"a"});
  EXPECT_EQ(position("a"), 0);
  write(kNow + kHour, kNow + 2 * kHour,
        {job("2", kNow, kNow + 90 * kMinute), job("running", kNow), job("never", 0, kNow + 5)});
  // Known late, and one that the manager lists again.
  write(kNow + 2 * kHour, kNow + 3 * kHour,
        {job("1", kNow, kNow + kMinute), job("2", kNow, kNow + 90 * kMinute)});
  EXPECT_THAT(behind(0), ElementsAre("2", "1"));
  EXPECT_THAT(places(0), ElementsAre("1", "2"));
  EXPECT_THAT(behind(1), ElementsAre("1"));
  EXPECT_THAT(behind(0, 1), ElementsAre("2"));
  const auto backlog = db_->reader().ended_backlog(1);
  ASSERT_TRUE(backlog);
  EXPECT_EQ(backlog->units, 1);
  EXPECT_EQ(backlog->oldest_ms, kNow + kMinute);
  EXPECT_EQ(db_->reader().ended_backlog(2)->units, 0);
  EXPECT_EQ(db_->reader().ended_backlog(2)->oldest_ms, 0);
}

TEST_P(EndedUnitsTest, AreKeptUntilAllTargetsHaveThem) {
  set({"a", "b"});
  write(kNow, kNow + kHour, {job("1", kNow, kNow + 1), job("2", kNow, kNow + 2)});
  ASSERT_TRUE(targets_->advance("a", 2));
  EXPECT_EQ(position("a"), 2);
  EXPECT_EQ(position("b"), 0);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_ended_units"), "2");
  ASSERT_TRUE(targets_->advance("b", 1));
  ASSERT_TRUE(targets_->advance("b", 0));  // not back
  EXPECT_EQ(position("b"), 1);
  EXPECT_EQ(text("SELECT seq FROM ceems_ended_units"), "2");
  ASSERT_TRUE(targets_->advance("b", 2));
  EXPECT_EQ(text("SELECT count(*) FROM ceems_ended_units"), "0");
  // Places are not given away twice.
  write(kNow + kHour, kNow + 2 * kHour, {job("3", kNow, kNow + 3)});
  EXPECT_THAT(places(2), ElementsAre("3"));
  // A new target gets what ends from then on, and one that is gone keeps nothing.
  set({"a", "c"});
  EXPECT_EQ(position("c"), 3);
  EXPECT_EQ(position("b"), -1);
  EXPECT_EQ(targets_->position("b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_ended_units"), "1");
  set({});
  EXPECT_EQ(text("SELECT count(*) FROM ceems_ended_units"), "0");
  write(kNow + 2 * kHour, kNow + 3 * kHour, {job("4", kNow, kNow + 4)});
  EXPECT_THAT(behind(0), IsEmpty());
}

TEST_P(EndedUnitsTest, HaveAnotherPlaceWithAnotherEnd) {
  set({"a"});
  write(kNow, kNow + kHour, {job("1", kNow, kNow + 1), job("2", kNow, kNow + 1)});
  write(kNow + kHour, kNow + 2 * kHour, {job("1", kNow, kNow + 2)});
  EXPECT_THAT(behind(0), ElementsAre("2", "1"));
  EXPECT_THAT(places(0), ElementsAre("2", "3"));
}

TEST_P(EndedUnitsTest, WaitUntilTheirGapsAreFilled) {
  set({"a"});
  auto broken =
      update(kNow, kNow + kHour, {job("1", kNow, kNow + kMinute), job("2", kNow), job("3", kNow)});
  broken.gaps = {{.updater = "tsdb", .parts = {"q"}}};
  write(broken);
  EXPECT_THAT(behind(0), IsEmpty());
  write(kNow + kHour, kNow + 2 * kHour,
        {job("2", kNow, kNow + 61 * kMinute), job("4", kNow, kNow + 61 * kMinute)});
  EXPECT_THAT(behind(0), ElementsAre("4"));
  const auto gaps = db_->writer().gaps("hpc");
  ASSERT_TRUE(gaps);
  ASSERT_EQ(gaps->size(), 1U);
  ASSERT_TRUE(targets_->advance("a", 3));
  ASSERT_TRUE(db_->writer().purge_reports(kNow + 2 * kHour, {}));  // kept for a shorter time
  GapFill fill;
  fill.cluster = broken.cluster;
  fill.gap_id = gaps->front().id;
  const auto filled = db_->writer().fill_gap(fill);
  ASSERT_TRUE(filled) << filled.error().message;
  EXPECT_THAT(behind(3), ElementsAre("1", "2"));  // not the one that still runs
  EXPECT_THAT(places(3), ElementsAre("4", "5"));
}

TEST_P(EndedUnitsTest, DoNotWaitForGapsThatArePurged) {
  set({"a"});
  auto broken = update(kNow, kNow + kHour, {job("1", kNow)});
  broken.gaps = {{.updater = "tsdb", .parts = {"q"}}};
  write(broken);
  write(kNow + kHour, kNow + 2 * kHour, {job("1", kNow, kNow + 61 * kMinute)});
  EXPECT_THAT(behind(0), IsEmpty());
  ASSERT_TRUE(targets_->advance("a", 1));  // by a unit behind it
  ASSERT_TRUE(db_->writer().purge(kNow + kHour + 1, {}));
  EXPECT_THAT(behind(1), ElementsAre("1"));
}

TEST_P(EndedUnitsTest, ThatArePurgedAreNotThere) {
  set({"a"});
  write(kNow, kNow + kHour, {job("1", kNow, kNow + 1), job("2", kNow, kNow + kHour)});
  ASSERT_TRUE(db_->writer().purge(kNow + kMinute, {}));
  EXPECT_THAT(behind(0), ElementsAre("2"));
}

INSTANTIATE_TEST_SUITE_P(,
                         EndedUnitsTest,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
