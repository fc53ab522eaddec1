#include "ingest/updater/unit_counters.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "ingest/updater/fake_tsdb.h"

namespace ceems::ingest {
namespace {

using Labels = std::map<std::string, std::string>;

constexpr std::int64_t kMidnight = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
constexpr const char* kEnergy = "ceems_compute_unit_energy_joules_total";
constexpr const char* kUser = "ceems_compute_unit_cpu_user_seconds_total";
constexpr const char* kSystem = "ceems_compute_unit_cpu_system_seconds_total";
constexpr const char* kCpus = "ceems_compute_unit_cpus";

Labels counter_labels(const std::string& uuid,
                      const std::string& host = "n1",
                      const std::string& domain = "") {
  Labels labels{{"manager", "slurm"},
                {"hostname", host},
                {"uuid", uuid},
                {"instance", host + ":9010"},
                {"job", "ceems"}};
  if (!domain.empty()) {
    labels["domain"] = domain;
  }
  return labels;
}

/// Returns a sample every 15 s from `first` on, with value(t), where t is in ms since `kMidnight`.
template <typename Value>
std::vector<tsdb::Sample> scraped(std::int64_t first, std::int64_t last, Value&& value) {
  std::vector<tsdb::Sample> samples;
  for (std::int64_t t = first; t <= last; t += 15 * kSecondMs) {
    samples.push_back({kMidnight + t, static_cast<double>(value(t))});
  }
  return samples;
}

model::Unit unit(const std::string& uuid, std::int64_t start_ms, std::int64_t end_ms = 0) {
  model::Unit u;
  u.uuid = uuid;
  u.started_at_ts = kMidnight + start_ms;
  u.ended_at_ts = end_ms > 0 ? kMidnight + end_ms : 0;
  return u;
}

std::vector<UnitUse> read(FakeTsdb& tsdb,
                          std::int64_t from_ms,
                          std::int64_t to_ms,
                          const std::vector<model::Unit>& units) {
  auto client = tsdb.client();
  const auto settings = client->settings();
  auto uses = read_unit_counters(
      *client, settings, {.window = {.start_ms = kMidnight + from_ms, .end_ms = kMidnight + to_ms}},
      units, {});
  EXPECT_TRUE(uses) << (uses ? "" : uses.error().message);
  return uses ? std::move(*uses) : std::vector<UnitUse>(units.size());
}

struct Totals {
  double cpu_seconds = 0;
  double joules = 0;
};

/// Runs consecutive windows of one length as the loop does: each one after it has settled, with the
/// unit as the manager would report it at the window's end, until the unit has ended.
Totals run_windows(FakeTsdb& tsdb,
                   std::int64_t length_ms,
                   std::int64_t start_ms,
                   std::int64_t end_ms,
                   std::int64_t until_ms) {
  Totals totals;
  for (std::int64_t from = 0; from < until_ms; from += length_ms) {
    const std::int64_t to = from + length_ms;
    tsdb.now_ms = kMidnight + to + 25 * kSecondMs;
    if (to < start_ms || end_ms <= from) {
      continue;
    }
    const auto uses = read(tsdb, from, to, {unit("42", start_ms, end_ms <= to ? end_ms : 0)});
    totals.cpu_seconds += uses[0].cpu_seconds.value_or(0);
    totals.joules += uses[0].cpu_energy_joules.value_or(0);
  }
  return totals;
}

Labels gpu_labels(const std::string& uuid, const std::string& host, const std::string& gpu) {
  Labels labels = counter_labels(uuid, host);
  labels["gpuuuid"] = gpu;
  labels["gpuiid"] = "";
  labels["index"] = "0";
  return labels;
}

TEST(UnitFigures, AddUpIdleEnergyAndGpuTimeAndFindThePeakOfMemory) {
  FakeTsdb tsdb;
  const std::int64_t end = 1800 * kSecondMs;
  const auto seconds = [](std::int64_t t) { return static_cast<double>(t) / 1000; };
  for (const std::string host : {"n1", "n2"}) {
    tsdb.add(kEnergy, counter_labels("42", host, "node"),
             scraped(0, end, [&](auto t) { return 100 * seconds(t); }));
    tsdb.add("ceems_compute_unit_idle_energy_joules_total", counter_labels("42", host, "node"),
             scraped(0, end, [&](auto t) { return 40 * seconds(t); }));
    tsdb.add("ceems_compute_unit_idle_energy_joules_total", counter_labels("42", host, "package"),
             scraped(0, end, [&](auto t) { return 30 * seconds(t); }));
    for (const auto& [domain, watts] :
         std::map<std::string, double>{{"node", 10}, {"package", 8}}) {
      tsdb.add("ceems_compute_unit_unused_idle_energy_joules_total",
               counter_labels("42", host, domain),
               scraped(0, end, [&](auto t) { return watts * seconds(t); }));
    }
    tsdb.add("ceems_compute_unit_memory_peak_bytes", counter_labels("42", host),
             scraped(0, end, [&](auto) { return host == "n1" ? 5e9 : 7e9; }));
    for (const std::string gpu : {"GPU-a", "GPU-b"}) {
      tsdb.add("ceems_compute_unit_gpu_busy_seconds_total", gpu_labels("42", host, host + gpu),
               scraped(0, end, [&](auto t) { return gpu == "GPU-a" ? 0.5 * seconds(t) : 0; }));
    }
  }
  tsdb.now_ms = kMidnight + end;
  const auto uses = read(tsdb, 0, 900 * kSecondMs, {unit("42", -60 * kSecondMs), unit("43", 0)});
  EXPECT_NEAR(uses[0].idle_energy_joules.value_or(-1), 2 * 40 * 900, 1e-6);
  EXPECT_NEAR(uses[0].not_used_joules.value_or(-1), 2 * 10 * 900, 1e-6);
  EXPECT_EQ(uses[0].peak_memory_bytes, 7e9);
  EXPECT_NEAR(uses[0].gpu_busy_seconds.value_or(-1), 2 * 450, 1e-6);
  EXPECT_EQ(uses[0].gpus_seen, 4U);
  EXPECT_EQ(uses[1].idle_energy_joules, std::nullopt);
  EXPECT_EQ(uses[1].not_used_joules, std::nullopt);
  EXPECT_EQ(uses[1].peak_memory_bytes, std::nullopt);
  EXPECT_EQ(uses[1].gpu_busy_seconds, std::nullopt);
}

/// A part of a job's hosts would give too little. Here only the domains are known.
TEST(UnitFigures, DoNotKnowWhatWasNotUsedIfAHostHasAnOlderExporter) {
  for (const bool both : {true, false}) {
    FakeTsdb tsdb;
    for (const std::string host : {"n1", "n2"}) {
      for (const std::string domain : {"package", "gpu"}) {
        const auto add = [&](const char* metric, double watts) {
          tsdb.add(metric, counter_labels("42", host, domain),
                   scraped(0, 900 * kSecondMs,
                           [&](auto t) { return watts * static_cast<double>(t) / 1000; }));
        };
        add(kEnergy, 100);
        add("ceems_compute_unit_idle_energy_joules_total", 40);
        if (both || host == "n1") {
          add("ceems_compute_unit_unused_idle_energy_joules_total", 10);
        }
      }
    }
    tsdb.now_ms = kMidnight + 960 * kSecondMs;
    const auto uses = read(tsdb, 0, 900 * kSecondMs, {unit("42", 0)});
    EXPECT_NEAR(uses[0].idle_energy_joules.value_or(-1), 4 * 40 * 900, 1e-6);
    EXPECT_EQ(uses[0].not_used_joules, both ? std::optional(4 * 10 * 900.0) : std::nullopt);
  }
}

TEST(UnitFigures, AreAbsentWithAnExporterThatDoesNotCountThem) {
  FakeTsdb tsdb;
  tsdb.add(kEnergy, counter_labels("42", "n1", "node"),
           scraped(0, 900 * kSecondMs, [](auto t) { return static_cast<double>(t); }));
  tsdb.now_ms = kMidnight + 960 * kSecondMs;
  const auto uses = read(tsdb, 0, 900 * kSecondMs, {unit("42", 0)});
  EXPECT_TRUE(uses[0].cpu_energy_joules);
  EXPECT_EQ(uses[0].idle_energy_joules, std::nullopt);
  EXPECT_EQ(uses[0].not_used_joules, std::nullopt);
  EXPECT_EQ(uses[0].peak_memory_bytes, std::nullopt);
  EXPECT_EQ(uses[0].gpu_busy_seconds, std::nullopt);
  EXPECT_EQ(uses[0].gpus_seen, 0U);
}

TEST(UnitFigures, GiveARequeuedJobThePeakOfItsOwnTime) {
  FakeTsdb tsdb;
  const std::int64_t end = 900 * kSecondMs;
  tsdb.add(kCpus, counter_labels("42"), scraped(0, end, [](auto) { return 4; }));
  tsdb.add("ceems_compute_unit_memory_peak_bytes", counter_labels("42"),
           scraped(0, end, [](auto t) { return t <= 300 * kSecondMs ? 9e9 : 2e9; }));
  tsdb.now_ms = kMidnight + end + 60 * kSecondMs;
  const auto uses =
      read(tsdb, 0, end, {unit("42", 0, 290 * kSecondMs), unit("42", 310 * kSecondMs)});
  EXPECT_EQ(uses[0].peak_memory_bytes, 9e9);
  EXPECT_EQ(uses[1].peak_memory_bytes, 2e9);
}

class WindowLengths : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(WindowLengths, GiveTheSameTotalsOfALongUnitWithRestartsOfTheExporter) {
  FakeTsdb tsdb;
  const std::int64_t start = 100 * kSecondMs;
  const std::int64_t end = 5000 * kSecondMs;
  const auto life = [&](std::int64_t t) {
    return static_cast<double>(std::min(t, end) - start) / 1000;
  };
  tsdb.add(kCpus, counter_labels("42"),
           scraped(start + 7000, end + 60'000, [](auto) { return 4; }));
  tsdb.add(kUser, counter_labels("42"), scraped(start + 7000, end + 60'000, life));
  tsdb.add(kSystem, counter_labels("42"),
           scraped(start + 7000, end + 60'000, [&](std::int64_t t) { return life(t) / 4; }));
  // The energy counter restarts with the exporter at 2000 s.
  tsdb.add(kEnergy, counter_labels("42", "n1", "node"),
           scraped(start + 7000, end + 60'000,
                   [&](auto t) { return t < 2'000'000 ? life(t) * 8 : life(t) * 8 - 15'200 + 8; }));
  const Totals totals = run_windows(tsdb, GetParam(), start, end, 5400 * kSecondMs);
  EXPECT_DOUBLE_EQ(totals.cpu_seconds, 4900 * 1.25);
  // Counted to the last sample before the restart and from 0 after it: samples every 15 s.
  const double before_restart = 8.0 * (1997 - 100);
  const double after_restart = 8.0 * 4900 - 15'200 + 8;
  EXPECT_DOUBLE_EQ(totals.joules, before_restart + after_restart);
}

TEST_P(WindowLengths, CountAFiveSecondUnitThatWasScrapedOnceAfterItsEnd) {
  FakeTsdb tsdb;
  for (const char* metric : {kCpus, kUser, kSystem}) {
    tsdb.add(metric, counter_labels("42"), {{kMidnight + 609'000, 2.5}});
  }
  tsdb.add(kEnergy, counter_labels("42", "n1", "node"), {{kMidnight + 609'000, 321.5}});
  // 598 s to 603 s crosses a boundary between windows; scraped at 609 s.
  const Totals totals = run_windows(tsdb, GetParam(), 598'000, 603'000, 1800 * kSecondMs);
  EXPECT_DOUBLE_EQ(totals.cpu_seconds, 5);
  EXPECT_DOUBLE_EQ(totals.joules, 321.5);
}

TEST_P(WindowLengths, CountASilenceLongerThanTheLookbackOnce) {
  FakeTsdb tsdb;
  auto samples = scraped(15'000, 600'000, [](auto t) { return static_cast<double>(t) / 1000; });
  // Prometheus was down for 40 minutes.
  for (const auto& sample :
       scraped(3'000'000, 5'400'000, [](auto t) { return static_cast<double>(t) / 1000; })) {
    samples.push_back(sample);
  }
  tsdb.add(kCpus, counter_labels("42"), scraped(15'000, 5'400'000, [](auto) { return 1; }));
  tsdb.add(kUser, counter_labels("42"), samples);
  const Totals totals = run_windows(tsdb, GetParam(), 1000, 6'000'000, 5400 * kSecondMs);
  EXPECT_DOUBLE_EQ(totals.cpu_seconds, 5400);
}

INSTANTIATE_TEST_SUITE_P(,
                         WindowLengths,
                         ::testing::Values(10 * kSecondMs, 60 * kSecondMs, 900 * kSecondMs),
                         [](const auto& one) { return fmt::format("{}s", one.param / 1000); });

TEST(UnitCounters, SumsHostsAndTakesEnergyOfTheNodeLessItsGpus) {
  FakeTsdb tsdb;
  for (const char* host : {"n1", "n2"}) {
    tsdb.add(kCpus, counter_labels("7", host), {{kMidnight + 10'000, 8}});
    tsdb.add(kUser, counter_labels("7", host), {{kMidnight + 10'000, 30}});
    tsdb.add("ceems_compute_unit_memory_used_bytes", counter_labels("7", host),
             {{kMidnight + 10'000, 1e9}, {kMidnight + 20'000, 3e9}});
    tsdb.add("ceems_compute_unit_memory_total_bytes", counter_labels("7", host),
             {{kMidnight + 10'000, 8e9}});
    for (const auto& [domain, joules] :
         std::map<std::string, double>{{"node", 100}, {"package", 40}, {"gpu", 35}}) {
      tsdb.add(kEnergy, counter_labels("7", host, domain), {{kMidnight + 10'000, joules}});
    }
  }
  // n3 has no meter for the whole node.
  tsdb.add(kEnergy, counter_labels("7", "n3", "package"), {{kMidnight + 10'000, 5}});
  tsdb.add(kEnergy, counter_labels("7", "n3", "dram"), {{kMidnight + 10'000, 2}});
  tsdb.add(kEnergy, counter_labels("7", "n3", "gpu"), {{kMidnight + 10'000, 1}});
  const auto uses = read(tsdb, 0, 60'000, {unit("7", 1000)});
  EXPECT_EQ(uses[0].cpus, 16);
  EXPECT_EQ(uses[0].cpu_seconds, 60);
  // 9 s of 1 GB, 10 s of 3 GB, and nothing yet for the 40 s until the next sample.
  EXPECT_DOUBLE_EQ(*uses[0].memory_ratio, (9 * 1e9 + 10 * 3e9) / (8e9 * 59));
  EXPECT_EQ(uses[0].cpu_energy_joules, 2 * (100 - 35) + 5 + 2);
  EXPECT_EQ(uses[0].gpu_energy_joules, 2 * 35 + 1);
}

TEST(UnitCounters, GivesNothingForUnitsWithoutSeries) {
  FakeTsdb tsdb;
  const auto uses = read(tsdb, 0, 60'000, {unit("7", 1000), unit("", 0)});
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_FALSE(uses[0].cpu_seconds);
  EXPECT_FALSE(uses[0].cpu_energy_joules);
  // One query is enough to find out.
  EXPECT_EQ(tsdb.queries_asked().size(), 1U);
}

TEST(UnitCounters, BeginsWithTheFirstSampleOfAnOldUnitThatNobodyWatched) {
  FakeTsdb tsdb;
  tsdb.add(kCpus, counter_labels("7"), {{kMidnight + 10'000, 1}});
  tsdb.add(kUser, counter_labels("7"), {{kMidnight + 10'000, 1e6}, {kMidnight + 25'000, 1e6 + 15}});
  const auto uses = read(tsdb, 0, 60'000, {unit("7", -86'400'000)});
  EXPECT_EQ(uses[0].cpu_seconds, 15);
}

TEST(UnitCounters, SharesTheSamplesOfARestartedUnitByItsStarts) {
  FakeTsdb tsdb;
  tsdb.add(kCpus, counter_labels("7"), scraped(10'000, 300'000, [](auto) { return 1; }));
  tsdb.add(kUser, counter_labels("7"), scraped(10'000, 300'000, [](std::int64_t t) {
             return static_cast<double>(t < 100'000 ? t : t - 100'000) / 1000;
           }));
  const auto uses = read(tsdb, 0, 200'000, {unit("7", 100'000), unit("7", 0, 99'000)});
  EXPECT_EQ(uses[1].cpu_seconds, 85 + 10 - 10);  // 0 s to the sample at 85 s
  EXPECT_EQ(uses[0].cpu_seconds, 90);            // to the sample at 190 s
}

TEST(UnitCounters, EscapesHostileIdentifiers) {
  FakeTsdb tsdb;
  const std::string hostile = "a.b|.*";
  tsdb.add(kCpus, counter_labels(hostile), {{kMidnight + 10'000, 1}});
  tsdb.add(kUser, counter_labels(hostile), {{kMidnight + 10'000, 3}});
  tsdb.add(kCpus, counter_labels("other"), {{kMidnight + 10'000, 1}});
  tsdb.add(kUser, counter_labels("other"), {{kMidnight + 10'000, 99}});
  const auto uses = read(tsdb, 0, 60'000, {unit(hostile, 1000)});
  EXPECT_EQ(uses[0].cpu_seconds, 3);
  EXPECT_EQ(tsdb.queries_asked()[0],
            "max_over_time({uuid=~\"a[.]b[|][.][*]\",__name__=~\"ceems_compute_unit_cpus|"
            "ceems_compute_unit_energy_joules_total\"}[385s])");
}

TEST(UnitCounters, FailsWhenAnyAnswerIsMissing) {
  for (const char* part : {"__name__", "user_seconds", "system_seconds", "used_bytes[", "energy"}) {
    FakeTsdb tsdb;
    tsdb.add(kCpus, counter_labels("7"), {{kMidnight + 10'000, 1}});
    tsdb.add(kEnergy, counter_labels("7", "n1", "node"), {{kMidnight + 10'000, 1}});
    auto client = tsdb.client();
    const auto settings = client->settings();
    tsdb.override_answer =
        [part](const auto& request) -> std::optional<Result<net::ClientResponse>> {
      const std::string query = request.first("query");
      const bool hit = std::string_view(part) == "used_bytes["
                           ? query.find("memory_used_bytes") != std::string::npos
                           : query.find(part) != std::string::npos;
      if (hit) {
        return Result<net::ClientResponse>(tsdb::FakeTransport::status(503, "busy"));
      }
      return std::nullopt;
    };
    const auto uses = read_unit_counters(
        *client, settings, {.window = {.start_ms = kMidnight, .end_ms = kMidnight + 60'000}},
        {unit("7", 1000)}, {});
    ASSERT_FALSE(uses) << part;
    EXPECT_EQ(uses.error().code, ErrorCode::kUnavailable);
  }
}

}  // namespace
}  // namespace ceems::ingest
