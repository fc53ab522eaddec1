// Which series the updater `tsdb` deletes.
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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
  std::vector<model::Unit> units{counted_unit("1.a", 0, 59'000), counted_unit("2", 0, 60'000),
                                 counted_unit("3", 0)};
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
  std::vector<model::Unit> units{counted_unit(std::string(kUuids[0]), 0, 59'000),
                                 counted_unit(std::string(kUuids[1]), 0, 59'000),
                                 counted_unit(std::string(kUuids[1]), 59'000),
                                 counted_unit(std::string(kUuids[2]), 0, 59'000),
                                 counted_unit(std::string(kUuids[3]), 0, 59'000),
                                 counted_unit("4711", 0, 59'000)};
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

TEST(TsdbUpdater, IgnoresNoUnitThatRunsOrHasNoId) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("cutoff_duration: 60s\ndelete_ignored: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::vector<model::Unit> units{counted_unit("1"), counted_unit("", 0, 1000),
                                 counted_unit("2", -kNow, -kNow + 1)};
  units[0].started_at_ts = 1;
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_FALSE(units[0].ignore);
  EXPECT_TRUE(units[1].ignore);
  EXPECT_TRUE(units[2].ignore);
  updater.release(kQuarter.end_ms);
  EXPECT_THAT(tsdb.deletions, Contains(R"(match[]={uuid=~"2"})"));
}

TEST(TsdbUpdater, DeletesNoWholeSeriesUnlessItIsTold) {
  EXPECT_TRUE(deletions_of_victoria_metrics("").empty());
}

TEST(TsdbUpdater, DeletesWholeSeriesOnlyOfIdsThatAreNeverGivenOutAgain) {
  EXPECT_EQ(deletions_of_victoria_metrics("delete_whole_series: true\n"),
            (std::vector<std::string>{fmt::format("match[]={{uuid=~\"{}\"}}", kUuids[0])}));
}

TEST(TsdbUpdater, DeletesWholeSeriesOfUuidsOnlyAndOfVmsThatLivedShort) {
  const std::string good = "09afaf90-0000-9999-aaaa-ffffffffffff";
  std::vector<model::Unit> units;
  const auto add = [&units](std::string id, std::int64_t created_ms) {
    model::Unit one = counted_unit(id, 0, 59'000);
    one.resource_manager = "openstack";
    one.created_at_ts = created_ms == 0 ? 0 : kNow + created_ms;
    units.push_back(one);
  };
  add(good, -59'999);
  for (const char wrong : {'/', ':', '`', 'g', 'A', '-'}) {
    std::string id = good;
    id[0] = wrong;
    add(id, -1000);
  }
  std::string id = good;
  id[8] = '0';
  add(id, -1000);
  add(good + "0", -1000);
  add("19afaf90-0000-9999-aaaa-ffffffffffff", -60'000);  // as long as the cutoff
  add("29afaf90-0000-9999-aaaa-ffffffffffff", 0);        // of unknown age
  units.push_back(counted_unit("39afaf90-0000-9999-aaaa-ffffffffffff", 0, 59'000));
  units.back().resource_manager = "k8s";
  units.back().created_at_ts = kNow - 1;
  units.push_back(counted_unit("49afaf90-0000-9999-aaaa-ffffffffffff", 0, 61'000));  // counts
  units.back().resource_manager = "k8s";
  units.back().created_at_ts = kNow - 1;
  units.push_back(counted_unit("59afaf90-0000-9999-aaaa-ffffffffffff", -kNow, -kNow + 59'000));
  units.back().resource_manager = "k8s";  // never started, which a wrong clock of a node may cause
  units.back().created_at_ts = 1;
  FakeTsdb tsdb;
  delete_whole_only(tsdb);
  TsdbUpdater updater(options_with("cutoff_duration: 60s\ndelete_ignored: true\n"
                                   "delete_whole_series: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  EXPECT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms);
  EXPECT_EQ(tsdb.deletions, std::vector<std::string>{"match[]={uuid=~\"" + good +
                                                     "|39afaf90-0000-9999-aaaa-ffffffffffff\"}"});
}

/// The log of two windows of short VMs.
std::string log_of_victoria_metrics(const std::string& yaml) {
  FakeTsdb tsdb;
  delete_whole_only(tsdb);
  TsdbUpdater updater(options_with("cutoff_duration: 60s\ndelete_ignored: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}\n" +
                                   yaml),
                      tsdb.client());
  ::testing::internal::CaptureStderr();
  for (const std::int64_t shift : {0, 900'000}) {
    auto units = short_units();
    EXPECT_TRUE(updater.update({.window = {kQuarter.start_ms + shift, kQuarter.end_ms + shift}},
                               units, {}));
    updater.release(kQuarter.end_ms + shift);
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(TsdbUpdater, SaysOnceWhatATsdbOfWholeSeriesCannotDelete) {
  const auto times = [](const std::string& log, std::string_view text) {
    std::size_t count = 0;
    for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) {
      ++count;
    }
    return count;
  };
  const std::string_view nothing = "so nothing is deleted; set delete_whole_series";
  const std::string_view no_labels = "so labels_to_drop has no effect";
  const std::string_view only_short = "only series of ignored VMs and pods are";
  const std::string plain = log_of_victoria_metrics("");
  EXPECT_EQ(times(plain, nothing), 1U) << plain;
  EXPECT_EQ(times(plain, no_labels) + times(plain, only_short), 0U);
  const std::string labels =
      log_of_victoria_metrics("delete_whole_series: true\nlabels_to_drop: ['{job=\"x\"}']\n");
  EXPECT_EQ(times(labels, no_labels), 1U) << labels;
  EXPECT_EQ(times(labels, nothing) + times(labels, only_short), 0U);
  const std::string whole = log_of_victoria_metrics("delete_whole_series: true\n");
  EXPECT_EQ(times(whole, only_short), 1U) << whole;
  EXPECT_EQ(times(whole, nothing) + times(whole, no_labels), 0U);
}

TEST(TsdbUpdater, KeepsAThousandWindowsThatWaitForDeletion) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("labels_to_drop: ['{job=\"x\"}']\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::vector<model::Unit> running{counted_unit("1")};
  const auto second = [](std::int64_t begin) {
    return model::Window{.start_ms = kNow + begin * 1000, .end_ms = kNow + begin * 1000 + 1000};
  };
  for (int i = 0; i < 1001; ++i) {
    ASSERT_TRUE(updater.update({.window = second(i)}, running, {}));
  }
  updater.release(second(998).end_ms);  // leaves two
  constexpr std::size_t kOfOne = 3;     // match[], start, end
  ASSERT_EQ(tsdb.deletions.size(), 998 * kOfOne) << "the oldest is dropped";
  EXPECT_EQ(tsdb.deletions[2], "end=1767225602");
  updater.release(second(1000).end_ms);
  EXPECT_EQ(tsdb.deletions.size(), 1000 * kOfOne);
  EXPECT_EQ(tsdb.deletions.back(), "end=1767226601");
}

TEST(TsdbUpdater, LogsADeletionThatFailsOnceAndThatItWorksAgain) {
  FakeTsdb tsdb;
  bool broken = true;
  tsdb.override_answer =
      [&broken](
          const FakeTransport::Request& request) -> std::optional<Result<net::ClientResponse>> {
    return broken && request.path.ends_with("/delete_series")
               ? std::optional<Result<net::ClientResponse>>(FakeTransport::status(
                     500, R"({"status":"error","errorType":"x","error":"no"})"))
               : std::nullopt;
  };
  TsdbUpdater updater(options_with("labels_to_drop: ['{job=\"x\"}']\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::int64_t begin_ms = kNow;
  const auto log_of_a_window = [&] {
    std::vector<model::Unit> running{counted_unit("1")};
    const model::Window window{.start_ms = begin_ms, .end_ms = begin_ms + 1000};
    begin_ms += 1000;
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(updater.update({.window = window}, running, {}));
    updater.release(window.end_ms);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of_a_window(), HasSubstr("cannot delete series from the TSDB"));
  EXPECT_THAT(log_of_a_window(), Not(HasSubstr("delete")));
  broken = false;
  EXPECT_THAT(log_of_a_window(), HasSubstr("series are deleted from the TSDB again"));
  EXPECT_THAT(log_of_a_window(), Not(HasSubstr("delete")));
}

TEST(TsdbUpdater, NeverSendsAnEmptyMatcher) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("labels_to_drop: ['{job=\"x\"}']\ndelete_ignored: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::vector<model::Unit> units{counted_unit("1", 0, 100'000)};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms);
  EXPECT_THAT(tsdb.deletions, Contains("match[]={job=\"x\"}"));
  for (const auto& text : tsdb.deletions) {
    EXPECT_THAT(text, Not(HasSubstr("uuid")));
  }
}

}  // namespace
}  // namespace ceems::ingest
