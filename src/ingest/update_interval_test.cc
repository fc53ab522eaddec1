// Plays the same job history with different update intervals, with the real updater reading
// samples.

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ingest/update_loop_test_support.h"
#include "ingest/updater/fake_tsdb.h"
#include "ingest/updater/tsdb.h"
#include "store/database.h"
#include "store/factory/open_database.h"
#include "store/json.h"
#include "store/sqlite/connection.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kSpan = 3600;

/// The data that exporters and recording rules left in the TSDB.
struct World {
  std::vector<Job> jobs;
  FakeTsdb tsdb;
};

void add_job(World& world, const Job& job, std::mt19937_64& random, bool by_rules) {
  std::map<std::string, std::string> labels{{"uuid", job.uuid}};
  if (by_rules) {
    std::vector<tsdb::Sample> watts;
    for (std::int64_t at = job.start / 15 * 15 + 15; at <= job.end; at += 15) {
      watts.push_back({kDay + at * 1000 - 1500, static_cast<double>(random() % 300)});
    }
    world.tsdb.add("uuid:ceems_host_power_watts:pue", labels, watts);
    return;
  }
  labels["manager"] = "slurm";
  labels["hostname"] = "n1";
  auto node = labels;
  node["domain"] = "node";
  const auto phase = static_cast<std::int64_t>(random() % 15);
  std::map<std::string, std::vector<tsdb::Sample>> samples;
  double joules = 0;
  std::int64_t before = job.start;
  for (std::int64_t at = job.start / 15 * 15 + phase; at <= job.end + 60; at += 15) {
    // Some scrapes fail, but never the first one after the end.
    if (at <= job.start || (random() % 6 == 0 && at < job.end - 200)) {
      continue;
    }
    const std::int64_t now = std::min(at, job.end);
    const auto seconds_of_life = static_cast<double>(now - job.start);
    joules += job.watts * static_cast<double>(now - before) * (at % 4 == 0 ? 0.5 : 1.5);
    if (random() % 40 == 0) {
      joules = 0;  // the exporter was restarted
    }
    before = now;
    const std::int64_t time = kDay + at * 1000;
    samples["cpus"].push_back({time, job.cpus});
    samples["cpu_user_seconds_total"].push_back({time, 0.5 * job.cpus * seconds_of_life});
    samples["cpu_system_seconds_total"].push_back({time, 0.125 * job.cpus * seconds_of_life});
    samples["memory_used_bytes"].push_back({time, static_cast<double>(random() % 1'000'000)});
    samples["memory_total_bytes"].push_back({time, 1e6});
    samples["energy_joules_total"].push_back({time, joules});
  }
  for (const auto& [name, list] : samples) {
    world.tsdb.add("ceems_compute_unit_" + name, name == "energy_joules_total" ? node : labels,
                   list);
  }
}

std::unique_ptr<World> random_world(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto world = std::make_unique<World>();
  const auto below = [&random](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  for (int i = 0; i < 4; ++i) {
    Job job;
    job.uuid = std::to_string(100 + i);
    job.user = i == 3 ? "rules" : "u" + std::to_string(below(2));
    job.project = "p";
    job.start = 60 + below(kSpan / 2);
    job.submit = job.start - 30;
    job.end = std::min(job.start + 5 + below(i == 0 ? 30 : kSpan), kSpan);
    job.cpus = static_cast<double>(1 + below(8));
    job.watts = static_cast<double>(1 + below(500));
    add_job(*world, job, random, i == 3);
    world->jobs.push_back(job);
  }
  std::vector<tsdb::Sample> factor;
  for (std::int64_t at = -4000; at <= kSpan + 600; at += 60) {
    factor.push_back({kDay + at * 1000, 30.0 + std::floor(static_cast<double>(at + 4000) / 700)});
  }
  world->tsdb.add("ceems_emissions_gCo2_kWh", {{"provider", "rte"}, {"country_code", "FR"}},
                  factor);
  return world;
}

using Totals = std::map<std::string, double>;

/// Returns an invalid answer or an error in place of the TSDB's answer.
Result<net::ClientResponse> nonsense(std::mt19937_64& random, const std::string& query) {
  using tsdb::FakeTransport;
  switch (random() % 7) {
    case 0:
      return FakeTransport::status(503, "busy");
    case 1:
      return fail(ErrorCode::kTimeout, "no answer in 130 s");
    case 2:
      return FakeTransport::ok("{\"status\":\"success\",\"data\":{\"resultType\":\"vec");
    case 3:
      return FakeTransport::ok(
          R"({"status":"success","data":{"resultType":"scalar","result":[1,"1"]}})");
    case 4:
      return FakeTransport::ok(
          R"({"status":"success","data":{"resultType":"vector","result":[]},"warnings":["store"]})");
    case 5:
      return FakeTransport::ok(
          R"({"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}})");
    default:
      // The updater halves the list down to one unit; a single unit is never too many.
      return query.find('|') == std::string::npos
                 ? FakeTransport::status(502, "<html>")
                 : FakeTransport::status(
                       422,
                       R"({"status":"error","errorType":"execution","error":"too many samples"})");
  }
}

/// Plays the history. Rounds run at the times that `step` returns, in seconds. `trouble` percent of
/// the TSDB's answers are invalid, except in the last rounds.
template <typename Step>
Totals play(World& world, Step step, unsigned trouble = 0) {
  const testing::TempDir dir;
  metrics::Registry registry("test", "the test");
  testing::FakeClock clock;
  auto database =
      store::open_database({.directory = dir.path().string(), .time_zone = "UTC"}, clock);
  EXPECT_TRUE(database);
  Script script;
  script.units = [&world](model::Window window, const auto&) {
    return units_of(world.jobs, window);
  };
  const auto options = read_tsdb_updater_options(config::parse_yaml("{}", "c.yml").value());
  const auto make = [&] {
    UpdateOptions update_options;
    update_options.max_update_interval = hours(24);
    update_options.purge = false;
    UpdateSource source{.cluster = {.id = "a", .manager = "slurm", .updaters = {}},
                        .manager = std::make_unique<FakeManager>(script),
                        .updaters = {}};
    source.updaters.push_back(
        {.id = "up", .updater = std::make_unique<TsdbUpdater>(*options, world.tsdb.client())});
    std::vector<UpdateSource> sources;
    sources.push_back(std::move(source));
    return UpdateLoop::create(update_options, std::move(sources), (*database)->writer(), registry,
                              clock)
        .value();
  };
  auto loop = make();
  std::mt19937_64 random(trouble);
  world.tsdb.override_answer =
      [&](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    if (trouble == 0 || request.path.find("/status/") != std::string::npos ||
        random() % 100 >= trouble) {
      return std::nullopt;
    }
    return nonsense(random, request.first("query"));
  };
  for (std::int64_t now = 0; now < kSpan + 200;) {
    const std::int64_t next = step(now);
    clock.advance(seconds(next - now));
    world.tsdb.now_ms = kDay + next * 1000;
    now = next;
    if (next % 5 == 0) {
      loop = make();  // restarted
    }
    loop->run_round();
  }
  trouble = 0;
  for (int i = 0; i < 3; ++i) {
    clock.advance(minutes(2));
    world.tsdb.now_ms += 120'000;
    loop->run_round();
  }
  EXPECT_TRUE((*database)->writer().gaps("a")->empty());
  Totals totals;
  auto connection = store::sqlite::Connection::open((dir.path() / "ceems.db").string(),
                                                    store::sqlite::OpenMode::kReadOnly);
  for (const char* table : {"units", "usage", "daily_usage"}) {
    for (const char* column : {"total_time_seconds", "avg_cpu_usage", "avg_cpu_mem_usage",
                               "total_cpu_energy_usage_kwh", "total_cpu_emissions_gms"}) {
      auto row = connection->prepare(
          fmt::format("SELECT {},{} FROM {}",
                      std::string_view(table) == "units" ? "uuid" : "username", column, table));
      EXPECT_TRUE(row);
      while (*row->step()) {
        const auto map = store::parse_metric_map(row->text(1)).value();
        for (const auto& [name, value] : map) {
          // The rules' energy has no timestamps, so the mean factor of each window is used.
          const bool by_rules = row->text(0) == "103" || row->text(0) == "rules";
          if (by_rules && name == "rte_total") {
            continue;
          }
          totals[fmt::format("{} {} {}.{}", table, row->text(0), column, name)] = value;
        }
      }
    }
  }
  return totals;
}

void expect_same(const Totals& expected, const Totals& actual, const std::string& what) {
  for (const auto& [name, value] : expected) {
    const auto found = actual.find(name);
    ASSERT_NE(found, actual.end()) << what << ": " << name;
    EXPECT_NEAR(found->second, value, 1e-9 * std::max(1.0, std::abs(value)))
        << what << ": " << name;
  }
  EXPECT_EQ(expected.size(), actual.size()) << what;
}

TEST(UpdateIntervals, GiveAJobTheSameTotals) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto world = random_world(seed);
    const auto whole = play(*world, [](std::int64_t) { return kSpan + 200; });
    ASSERT_GT(whole.size(), 30U);
    EXPECT_GT(whole.at("units 103 total_cpu_energy_usage_kwh.total"), 0);
    for (const std::int64_t interval : {60, 300, 1000}) {
      expect_same(whole, play(*world, [interval](std::int64_t now) { return now + interval; }),
                  fmt::format("seed {}, every {} s", seed, interval));
    }
    std::mt19937_64 random(seed + 100);
    expect_same(whole,
                play(*world,
                     [&random](std::int64_t now) {
                       return now + 1 + static_cast<std::int64_t>(random() % 900);
                     }),
                fmt::format("seed {}, at random", seed));
  }
}

TEST(UpdateIntervals, LoseNothingByWhatATsdbAnswers) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto world = random_world(seed);
    const auto whole = play(*world, [](std::int64_t) { return kSpan + 200; });
    for (const unsigned trouble : {2U, 15U, 100U}) {
      expect_same(whole,
                  play(
                      *world, [](std::int64_t now) { return now + 200; }, trouble),
                  fmt::format("seed {}, {} %", seed, trouble));
    }
  }
}

}  // namespace
}  // namespace ceems::ingest
