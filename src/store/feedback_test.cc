#include "store/feedback.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/reports.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FeedbackTest : public EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    if (IsSkipped()) {
      return;
    }
    auto opened = db_->open_feedback();
    ASSERT_TRUE(opened) << opened.error().message;
    feedback_ = std::move(*opened);
  }
  void TearDown() override { feedback_.reset(); }

  static ReportKey run(const std::string& uuid) {
    return {.cluster_id = "hpc", .uuid = uuid, .started_at_ts = kNow};
  }
  void say(const std::string& user,
           const std::string& uuid,
           const std::string& rule,
           const std::string& answer,
           std::int64_t at = kNow) {
    const auto done = feedback_->answer(
        {.key = run(uuid), .rule = rule, .username = user, .answer = answer, .answered_ms = at});
    ASSERT_TRUE(done) << done.error().message;
  }
  /// RULE: ANSWER of the person.
  Texts said(const std::string& user, const std::string& uuid) {
    Texts all;
    const auto found = db_->reader().feedback_of(run(uuid), user);
    EXPECT_TRUE(found);
    for (const Feedback& one : *found) {
      all.push_back(fmt::format("{}: {} {}", one.rule, one.answer, one.answered_ms - kNow));
    }
    return all;
  }
  /// RULE: YES/NO/NOT APPLICABLE of PEOPLE.
  Texts sums() {
    Texts all;
    const auto found = db_->reader().feedback_by_rule();
    EXPECT_TRUE(found);
    for (const FeedbackSum& one : *found) {
      all.push_back(fmt::format("{}: {}/{}/{} of {}", one.rule, one.yes, one.no, one.not_applicable,
                                one.people));
    }
    return all;
  }

  std::unique_ptr<FeedbackWriter> feedback_;
};

TEST_P(FeedbackTest, HoldsOneAnswerOfEachPersonRunAndRule) {
  EXPECT_THAT(sums(), IsEmpty());
  say("ada", "1", "mem-excess", "yes");
  say("ada", "1", "cpu-low", "no");
  say("ada", "2", "mem-excess", "not_applicable");
  say("bob", "1", "mem-excess", "no");
  EXPECT_THAT(said("ada", "1"), ElementsAre("cpu-low: no 0", "mem-excess: yes 0"));
  EXPECT_THAT(said("bob", "1"), ElementsAre("mem-excess: no 0"));
  EXPECT_THAT(said("bob", "2"), IsEmpty());
  EXPECT_THAT(said("", "1"), IsEmpty());
  EXPECT_THAT(sums(), ElementsAre("cpu-low: 0/1/0 of 1", "mem-excess: 1/1/1 of 2"));

  say("ada", "1", "mem-excess", "no", kNow + 5);  // a change of mind
  EXPECT_THAT(said("ada", "1"), ElementsAre("cpu-low: no 0", "mem-excess: no 5"));
  EXPECT_THAT(sums(), ElementsAre("cpu-low: 0/1/0 of 1", "mem-excess: 0/2/1 of 2"));
}

TEST_P(FeedbackTest, HoldsHostileTexts) {
  const std::string hostile = "ada'; DROP TABLE ceems_feedback;--";
  say(hostile, "' OR 1=1 --", std::string("\xff\x00<b>", 5), "yes");
  EXPECT_THAT(said(hostile, "' OR 1=1 --"), ElementsAre("\uFFFD\uFFFD<b>: yes 0"));
  EXPECT_THAT(said("ada", "' OR 1=1 --"), IsEmpty());
}

TEST_P(FeedbackTest, GoesWithItsUnit) {
  write(kNow, kNow + kHour, {job("1", kNow, kNow + kMinute), job("2", kNow, kNow + kHour)});
  say("ada", "1", "cpu-low", "no");
  say("ada", "2", "cpu-low", "no");
  EXPECT_THAT(sums(), ElementsAre("cpu-low: 0/2/0 of 1"));
  ASSERT_TRUE(db_->writer().purge(kNow + 2 * kMinute, {}));
  EXPECT_THAT(sums(), ElementsAre("cpu-low: 0/1/0 of 1"));
  EXPECT_THAT(said("ada", "1"), IsEmpty());
  EXPECT_THAT(said("ada", "2"), ElementsAre("cpu-low: no 0"));
}

TEST_P(FeedbackTest, IsAboutRulesThatWereFound) {
  write(kNow, kNow + kHour, {job("1", kNow, kNow + kMinute)});
  ReportRow row{.key = run("1"), .ended_at_ts = kNow + kMinute, .final = true};
  row.findings = {{.rule = "mem-excess", .numbers = "{}"}, {.rule = "cpu-low", .numbers = "{}"}};
  ASSERT_TRUE(db_->writer().store_reports({row}));
  const auto found = [this](const ReportKey& key) { return *db_->reader().rules_found(key); };
  EXPECT_THAT(found(row.key), ElementsAre("cpu-low", "mem-excess"));
  EXPECT_THAT(found({"hpc", "1", kNow + 1}), IsEmpty());
  EXPECT_THAT(found({"other", "1", kNow}), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(,
                         FeedbackTest,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
