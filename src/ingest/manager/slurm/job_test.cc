#include "ingest/manager/slurm/job.h"

#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::ingest {
namespace {

Allocation tres(std::string_view text, MemoryRule rule = MemoryRule::kExact) {
  return parse_alloc_tres(text, rule);
}

SlurmJob job_of(std::optional<std::int64_t> start_ms, std::optional<std::int64_t> end_ms) {
  SlurmJob job;
  job.id = "1";
  job.start_ms = start_ms;
  job.end_ms = end_ms;
  return job;
}

TEST(AllocTres, ReadsMemoryWithFractionsAndUnits) {
  EXPECT_EQ(tres("mem=320.5G").memory_bytes, 344134254592);
  EXPECT_EQ(tres("mem=1.5T").memory_bytes, 1649267441664);
  EXPECT_EQ(tres("mem=1P").memory_bytes, 1125899906842624);
  EXPECT_EQ(tres("mem=4000K").memory_bytes, 4096000);
  EXPECT_EQ(tres("mem=200").memory_bytes, 209715200);  // MiB
  EXPECT_EQ(tres("mem=200.5").memory_bytes, 210239488);
  for (const char* none : {"mem=", "mem=G", "mem=0", "mem", "mem=-1G", "mem=1e30G", "mem=nanG"}) {
    EXPECT_EQ(tres(none).memory_bytes, 0) << none;
  }
}

// CEEMS 0.10.2 reads them the same way, except that it reads 0 for an unknown unit.
TEST(AllocTres, CutsFractionsOffMemoryUnlessAskedNotTo) {
  const auto bytes = [](std::string_view text) {
    return tres(text, MemoryRule::kTruncated).memory_bytes;
  };
  EXPECT_EQ(bytes("mem=320.5G"), 343597383680);
  EXPECT_EQ(bytes("mem=1.5T"), 1099511627776);
  EXPECT_EQ(bytes("mem=0.9G"), 0);
  EXPECT_EQ(bytes("mem=200"), 209715200);
  EXPECT_EQ(bytes("mem=200.9"), 209715200);
  EXPECT_EQ(bytes("mem=1P"), 1125899906842624);
  EXPECT_EQ(bytes("mem=nanG"), 0);
}

TEST(AllocTres, CountsGpusByTheTotalOrElseByTypes) {
  EXPECT_EQ(tres("gres/gpu:a=3,gres/gpu=7").gpus, 7);
  EXPECT_EQ(tres("gres/gpu=7,gres/gpu:a=3").gpus, 7);
  EXPECT_EQ(tres("gres/gpu:mig1=3,gres/gpu:mig2=1").gpus, 4);
  EXPECT_EQ(tres("gres/gpumem=80G,gres/gpuutil=100").gpus, 0);
  EXPECT_EQ(tres("gres/gpu:a100_1g.5gb=2,gres/gpu:a100_3g.20gb=1,gres/shard=8").gpus, 3);
  EXPECT_EQ(tres("cpu=-5,gres/gpu=-1,gres/gpu:a=x").gpus, 0);
  EXPECT_EQ(tres("cpu=-5").cpus, 0);
  EXPECT_EQ(tres("cpu=9223372036854775807").cpus, 1'000'000'000);
  const auto all = tres("billing=80,cpu=8,energy=14,node=2,,=,node");
  EXPECT_EQ(all.billing, 80);
  EXPECT_EQ(all.cpus, 8);
  EXPECT_EQ(all.nodes, 2);
}

TEST(SlurmJob, CountsTheTimeInTheWindow) {
  const model::Window window{.start_ms = 900'000, .end_ms = 1'800'000};
  EXPECT_EQ(active_ms(job_of(0, std::nullopt), window), 900'000);
  EXPECT_EQ(active_ms(job_of(0, 1'500'000), window), 600'000);
  EXPECT_EQ(active_ms(job_of(1'500'000, std::nullopt), window), 300'000);
  EXPECT_EQ(active_ms(job_of(1'500'000, 1'620'000), window), 120'000);
  EXPECT_EQ(active_ms(job_of(100'000, 800'000), window), 700'000);  // recorded late
  EXPECT_EQ(active_ms(job_of(100'000, 900'000), window), 0);  // counted by the previous window
  EXPECT_EQ(active_ms(job_of(std::nullopt, std::nullopt), window), 0);
  EXPECT_EQ(active_ms(job_of(1'900'000, 2'000'000), window), 0);
  EXPECT_EQ(active_ms(job_of(800'000, 100'000), window), 0);  // the clock went back
}

constexpr model::Window kJobWindow{.start_ms = 900'000, .end_ms = 1'800'000};

struct Seen {
  std::int64_t ended_ms = -1;  ///< -1: the window has no unit for the job
  double walltime = -1;
  bool operator==(const Seen&) const = default;
};
// GoogleTest calls it by this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Seen& seen, std::ostream* out) {
  *out << "ended " << seen.ended_ms << ", walltime " << seen.walltime;
}

/// Returns how kJobWindow reports a job.
Seen seen(std::optional<std::int64_t> start_ms, std::optional<std::int64_t> end_ms) {
  const auto unit = to_unit(job_of(start_ms, end_ms), kJobWindow, TimeZone());
  return unit ? Seen{unit->ended_at_ts, unit->total_time_seconds.at("walltime")} : Seen{};
}

TEST(SlurmUnit, ThatStartsAtTheEndOfTheWindowIsThereAndALaterOneIsNot) {
  EXPECT_EQ(seen(1'799'000, {}), (Seen{0, 1}));
  EXPECT_EQ(seen(1'800'000, {}), (Seen{0, 0}));
  EXPECT_EQ(seen(1'800'001, {}), Seen{});
}

TEST(SlurmUnit, ThatEndsAtTheEndOfTheWindowHasEndedAndALaterOneHasNot) {
  EXPECT_EQ(seen(900'000, 1'799'999), (Seen{1'799'999, 899}));
  EXPECT_EQ(seen(900'000, 1'800'000), (Seen{1'800'000, 900}));
  EXPECT_EQ(seen(900'000, 1'800'001), (Seen{0, 900}));
  EXPECT_EQ(to_unit(job_of(900'000, 1'800'001), kJobWindow, TimeZone())->state, "RUNNING");
}

TEST(SlurmUnit, CountsFromTheStartOfTheWindow) {
  EXPECT_EQ(seen(899'000, {}), (Seen{0, 900}));
  EXPECT_EQ(seen(900'000, {}), (Seen{0, 900}));
  EXPECT_EQ(seen(901'000, {}), (Seen{0, 899}));
}

TEST(SlurmUnit, ThatEndsAtTheStartOfTheWindowBelongsToTheOneBefore) {
  EXPECT_EQ(seen(800'000, 899'999), (Seen{899'999, 99})) << "in full: it was recorded late";
  EXPECT_EQ(seen(800'000, 900'000), (Seen{900'000, 0}));
  EXPECT_EQ(seen(800'000, 901'000), (Seen{901'000, 1}));
}

TEST(SlurmUnit, ThatNeverStartedIsThereFromItsEnd) {
  EXPECT_EQ(seen({}, 1'800'000), (Seen{1'800'000, 0}));
  EXPECT_EQ(seen({}, 1'800'001), Seen{});
}

TEST(SlurmUnit, AJobThatWasCancelledWhileWaitingRunsAtNoTime) {
  SlurmJob job = job_of(std::nullopt, 1'500'000);
  job.state = "CANCELLED by 1";
  EXPECT_FALSE(to_unit(job, {.start_ms = 0, .end_ms = 900'000}, TimeZone()));
  const auto unit = to_unit(job, {.start_ms = 900'000, .end_ms = 1'800'000}, TimeZone());
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->state, "CANCELLED by 1");
  EXPECT_EQ(unit->total_time_seconds.at("walltime"), 0);
}

}  // namespace
}  // namespace ceems::ingest
