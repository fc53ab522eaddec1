// Which series the updater `tsdb` deletes.
#include <array>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/updater/fake_tsdb.h"
#include "ingest/updater/tsdb.h"
#include "ingest/updater/tsdb_test_support.h"

namespace ceems::ingest {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

TEST(TsdbUpdater, IgnoresShortUnitsAndDeletesTheirSeriesOnceTheWindowIsCommitted) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("cutoff_duration: 60s\ndelete_ignored: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::vector<model::Unit> units{unit("1.a", 0, 59'000), unit("2", 0, 60'000), unit("3", 0)};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_TRUE(units[0].ignore);
  EXPECT_FALSE(units[1].ignore);
  EXPECT_FALSE(units[2].ignore);
  // The same window again: it was not committed, so the series are still needed.
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms - 1);
  EXPECT_TRUE(tsdb.deletions.empty());
  updater.release(kQuarter.end_ms);
  EXPECT_EQ(tsdb.deletions, (std::vector<std::string>{R"(match[]={uuid=~"1[.]a"})",
                                                      "start=1767225540", "end=1767226500"}));
}

/// Answers as VictoriaMetrics does: it deletes whole series only.
void delete_whole_only(FakeTsdb& tsdb) {
  tsdb.override_answer =
      [](const FakeTransport::Request& request) -> std::optional<Result<net::ClientResponse>> {
    if (!request.path.ends_with("/delete_series") || request.first("start").empty()) {
      return std::nullopt;
    }
    return FakeTransport::status(
        422, R"({"status":"error","errorType":"422","error":"start and end aren't supported. )"
             R"(Remove these args from the query in order to delete all the matching metrics"})");
  };
}

constexpr std::array<std::string_view, 4> kUuids{
    "6ba7b810-9dad-11d1-80b4-00c04fd430c0", "6ba7b810-9dad-11d1-80b4-00c04fd430c1",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c2", "6ba7b810-9dad-11d1-80b4-00c04fd430c3"};

/// Short VMs: one alone, one whose id had a later life, one of old age, and a job.
std::vector<model::Unit> short_units() {
  std::vector<model::Unit> units{
      unit(std::string(kUuids[0]), 0, 59'000), unit(std::string(kUuids[1]), 0, 59'000),
      unit(std::string(kUuids[1]), 59'000),    unit(std::string(kUuids[2]), 0, 59'000),
      unit(std::string(kUuids[3]), 0, 59'000), unit("4711", 0, 59'000)};
  for (auto& one : units) {
    one.resource_manager = "openstack";
    one.created_at_ts = one.started_at_ts - 10'000;
  }
  units[3].created_at_ts -= 86'400'000;
  units[4].resource_manager = "slurm";
  units[5].resource_manager = "slurm";
  return units;
}

std::vector<std::string> deletions_of_victoria_metrics(const std::string& yaml) {
  FakeTsdb tsdb;
  delete_whole_only(tsdb);
  TsdbUpdater updater(options_with("cutoff_duration: 60s\ndelete_ignored: true\n"
                                   "labels_to_drop: ['{job=\"x\"}']\n"
                                   "queries: {avg_cpu_usage: {global: up}}\n" +
                                   yaml),
                      tsdb.client());
  auto units = short_units();
  EXPECT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms);
  return tsdb.deletions;
}

TEST(TsdbUpdater, DeletesNoWholeSeriesUnlessItIsTold) {
  EXPECT_TRUE(deletions_of_victoria_metrics("").empty());
}

TEST(TsdbUpdater, DeletesWholeSeriesOnlyOfIdsThatAreNeverGivenOutAgain) {
  EXPECT_EQ(deletions_of_victoria_metrics("delete_whole_series: true\n"),
            (std::vector<std::string>{fmt::format("match[]={{uuid=~\"{}\"}}", kUuids[0])}));
}

TEST(TsdbUpdater, NeverSendsAnEmptyMatcher) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("labels_to_drop: ['{job=\"x\"}']\ndelete_ignored: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::vector<model::Unit> units{unit("1", 0, 100'000)};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms);
  EXPECT_THAT(tsdb.deletions, Contains("match[]={job=\"x\"}"));
  for (const auto& text : tsdb.deletions) {
    EXPECT_THAT(text, Not(HasSubstr("uuid")));
  }
}

}  // namespace
}  // namespace ceems::ingest
