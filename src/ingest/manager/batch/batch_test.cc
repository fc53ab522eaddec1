#include "ingest/manager/batch/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kBatchStart = 1'767'225'600'000;  // 2026-01-01T00:00:00Z

/// Passes on the jobs that the test set; records the ids it was asked for.
class FakeSource final : public BatchSource {
 public:
  Result<> jobs(model::Window /*window*/, const JobSink& job, std::stop_token /*stop*/) override {
    for (const auto& one : in_window) {
      job(one);
    }
    return ok ? Result<>() : fail(ErrorCode::kUnavailable, "away");
  }
  Result<> jobs_by_id(const std::vector<std::string>& ids,
                      const JobSink& job,
                      std::stop_token /*stop*/) override {
    asked.push_back(ids);
    for (const auto& one : by_id) {
      job(one);
    }
    return ids_ok ? Result<>() : fail(ErrorCode::kUnavailable, "away");
  }

  std::vector<BatchJob> in_window;
  std::vector<BatchJob> by_id;
  bool ok = true;
  bool ids_ok = true;
  std::vector<std::vector<std::string>> asked;
};

BatchJob job(const std::string& id, std::int64_t start, std::int64_t end = 0) {
  BatchJob result{.id = id, .project = "p", .user = "ada", .running_state = "RUN"};
  result.state = end == 0 ? "RUN" : "DONE";
  result.start_ms = kBatchStart + start;
  result.end_ms = end == 0 ? 0 : kBatchStart + end;
  result.cpus = 4;
  result.nodes = 1;
  return result;
}

model::Window hours(int from, int until) {
  return {.start_ms = kBatchStart + from * kHourMs, .end_ms = kBatchStart + until * kHourMs};
}

class Batch : public ::testing::Test {
 protected:
  void create(bool members = true) {
    auto owned = std::make_unique<FakeSource>();
    source_ = owned.get();
    manager_ = make_batch_manager("c1", std::move(owned), TimeZone(), members);
  }
  void SetUp() override { create(); }
  /// "id state walltime" for each unit.
  std::vector<std::string> units(int from, int until) {
    std::vector<std::string> result;
    const auto units = manager_->fetch_units(hours(from, until), {});
    if (!units) {
      return {units.error().message};
    }
    for (const auto& unit : *units) {
      result.push_back(unit.uuid + " " + unit.state + " " +
                       std::to_string(static_cast<int>(unit.total_time_seconds.at("walltime"))));
    }
    return result;
  }
  FakeSource* source_ = nullptr;
  std::unique_ptr<ResourceManager> manager_;
};

TEST_F(Batch, ReportsJobsAsTheyStoodAtTheEndOfTheWindow) {
  source_->in_window = {job("1", -kHourMs), job("6[1]", kHourMs / 2, kHourMs + 1),
                        job("2", 0, kHourMs / 4), job("3", kHourMs + 1),
                        job("4", kHourMs, kHourMs + 5)};
  const auto units = manager_->fetch_units(hours(0, 1), {});
  ASSERT_TRUE(units);
  ASSERT_THAT(*units, SizeIs(4));  // the third has not started
  EXPECT_EQ((*units)[3].uuid, "6[1]");
  EXPECT_EQ((*units)[3].state, "RUN");
  EXPECT_EQ((*units)[3].ended_at_ts, 0);
  EXPECT_EQ((*units)[3].ended_at, "Unknown");
  EXPECT_EQ((*units)[3].elapsed, "00:30:00");
  EXPECT_EQ((*units)[3].total_time_seconds.at("alloc_cputime"), 4 * 1800);
  EXPECT_EQ((*units)[1].state, "DONE");
  EXPECT_EQ((*units)[1].started_at, "2026-01-01T00:00:00+0000");
  EXPECT_EQ((*units)[1].total_time_seconds.at("walltime"), 900);
}

TEST_F(Batch, CountsEachSecondOnceOverWindows) {
  source_->in_window = {job("1", kHourMs / 2)};
  EXPECT_THAT(units(0, 1), ElementsAre("1 RUN 1800"));
  source_->in_window = {job("1", kHourMs / 2), job("1", kHourMs / 2, kHourMs + kHourMs / 4)};
  EXPECT_THAT(units(1, 2), ElementsAre("1 DONE 900"));
  EXPECT_THAT(units(2, 3), IsEmpty());  // still in the output, but reported
}

TEST_F(Batch, ReportsAnEndedJobAgainIfItsWindowWasNotStored) {
  source_->in_window = {job("1", 0, kHourMs / 4)};
  EXPECT_THAT(units(0, 1), ElementsAre("1 DONE 900"));
  EXPECT_THAT(units(0, 2), ElementsAre("1 DONE 900"));
  EXPECT_THAT(units(2, 3), IsEmpty());
}

TEST_F(Batch, ReportsAJobThatWasRecordedAfterItsEndWithAllOfItsTime) {
  EXPECT_THAT(units(0, 1), IsEmpty());
  source_->in_window = {job("1", kHourMs / 2, kHourMs - 1000), job("2", kHourMs / 2, kHourMs)};
  EXPECT_THAT(units(1, 2), ElementsAre("1 DONE 1799", "2 DONE 1800"));
  EXPECT_THAT(units(2, 3), IsEmpty());
}

TEST_F(Batch, CountsAStartThatWasRecordedLateFromThere) {
  EXPECT_THAT(units(0, 1), IsEmpty());
  source_->in_window = {job("1", kHourMs / 2)};
  EXPECT_THAT(units(1, 2), ElementsAre("1 RUN 5400"));
  EXPECT_THAT(units(1, 2), ElementsAre("1 RUN 5400"));  // again, because it was not stored
  EXPECT_THAT(units(2, 3), ElementsAre("1 RUN 3600"));
}

TEST_F(Batch, AsksForAJobThatIsMissing) {
  source_->in_window = {job("6[1]", 0), job("7", 0)};
  units(0, 1);
  source_->in_window = {job("7", 0)};
  source_->by_id = {job("6[1]", 0, kHourMs - 1000), job("6[1]", -kHourMs, -kMinuteMs), job("9", 0)};
  EXPECT_THAT(units(1, 2), ElementsAre("6[1] DONE 3599", "7 RUN 3600"));
  EXPECT_THAT(source_->asked, ElementsAre(ElementsAre("6[1]")));
  EXPECT_THAT(units(2, 3), ElementsAre("7 RUN 3600"));
  EXPECT_THAT(source_->asked, SizeIs(1));
}

TEST_F(Batch, LeavesAJobThatIsNoLongerKnownAsItIs) {
  source_->in_window = {job("7", 0)};
  units(0, 1);
  source_->in_window = {};
  for (int hour = 1; hour < 6; ++hour) {
    EXPECT_THAT(units(hour, hour + 1), IsEmpty());
  }
  EXPECT_THAT(source_->asked, SizeIs(3));
}

TEST_F(Batch, DoesNotFailBecauseAQuestionFails) {
  source_->in_window = {job("7", 0)};
  units(0, 1);
  source_->in_window = {};
  source_->ids_ok = false;
  EXPECT_THAT(units(1, 2), IsEmpty());
  source_->ids_ok = true;
  source_->by_id = {job("7", 0, kHourMs + 1000)};
  EXPECT_THAT(units(2, 3), ElementsAre("7 DONE 3601"));
}

TEST_F(Batch, ForgetsNothingWhenAFetchFails) {
  source_->in_window = {job("7", 0)};
  units(0, 1);
  source_->ok = false;
  EXPECT_THAT(units(1, 2), ElementsAre("away"));
  source_->ok = true;
  source_->in_window = {};
  source_->by_id = {job("7", 0, kHourMs + 1000)};
  EXPECT_THAT(units(1, 3), ElementsAre("7 DONE 1"));
}

TEST_F(Batch, EndsTheRunOfARequeuedJob) {
  source_->in_window = {job("7", 0)};
  units(0, 1);
  source_->in_window = {job("7", kHourMs + kMinuteMs)};
  EXPECT_THAT(units(1, 2), ElementsAre("7 REQUEUED 3600", "7 RUN 3540"));
  EXPECT_THAT(units(2, 3), ElementsAre("7 RUN 3600"));
  EXPECT_THAT(source_->asked, IsEmpty());
}

TEST_F(Batch, LeavesOutWhatHasNoIdOrNeverRan) {
  BatchJob nameless = job("", 0);
  BatchJob waiting = job("8", 0);
  waiting.start_ms = 0;
  source_->in_window = {nameless, waiting};
  EXPECT_THAT(units(0, 1), IsEmpty());
}

TEST_F(Batch, DescribesAllocationAndTagsAsJson) {
  BatchJob one = job("6[1]", 0);
  one.name = "a\"b\xff";
  one.gpus = 2;
  one.memory_bytes = 3.0 * 1024 * 1024;
  one.hosts = {"n1", "n2"};
  one.tags = {{"queue", "q"}};
  source_->in_window = {one};
  const auto units = manager_->fetch_units(hours(0, 1), {}).value();
  EXPECT_EQ(units[0].allocation, R"({"cpus":4,"gpus":2,"mem":3145728,"nodes":1})");
  EXPECT_EQ(units[0].tags, R"({"nodelist":"n1|n2","queue":"q"})");
  EXPECT_EQ(units[0].name, "a\"b\xEF\xBF\xBD");
  EXPECT_EQ(units[0].total_time_seconds.at("alloc_cpumemtime"), 3 * 3600);
  EXPECT_EQ(units[0].total_time_seconds.at("alloc_gputime"), 2 * 3600);
  EXPECT_EQ(units[0].total_time_seconds.at("alloc_gpumemtime"), 3600);
  EXPECT_EQ(job("1", 0).memory_bytes, 0);  // unknown memory: walltime
}

TEST_F(Batch, ListsTheUsersAndProjectsOfTheJobs) {
  BatchJob other = job("8", 0);
  other.user = "bob";
  other.project = "";
  BatchJob unowned = job("9", 0);
  unowned.user = "";
  source_->in_window = {job("7", 0), other, unowned};
  units(0, 1);
  auto people = manager_->fetch_users_projects(hours(0, 1), {}).value();
  ASSERT_THAT(people.users, SizeIs(1));
  EXPECT_EQ(people.users[0].name, "ada");
  EXPECT_THAT(people.users[0].projects, ElementsAre("p"));
  EXPECT_THAT(people.projects[0].users, ElementsAre("ada"));
  EXPECT_TRUE(manager_->members_are_of_jobs());
  create(false);
  source_->in_window = {job("7", 0), other, unowned};
  units(0, 1);
  people = manager_->fetch_users_projects(hours(0, 1), {}).value();
  ASSERT_THAT(people.users, SizeIs(2));
  EXPECT_THAT(people.users[0].projects, IsEmpty());
  EXPECT_THAT(people.projects, IsEmpty());
  EXPECT_FALSE(manager_->members_are_of_jobs());
}

}  // namespace
}  // namespace ceems::ingest
