#include "ingest/nodes/node_energy.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "ingest/nodes/node_progress.h"
#include "ingest/updater/fake_tsdb.h"
#include "store/factory/open_database.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

constexpr std::int64_t kYearBegins = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
constexpr double kUnitsOfKwh = 1e9;
constexpr double kJoulesOfKwh = 3.6e6;

using Samples = std::vector<tsdb::Sample>;

/// A counter that grows by so many watts from a reading at `from` until `to`.
Samples watts(double rate, std::int64_t from, std::int64_t to, double start = 0) {
  Samples samples;
  for (std::int64_t t = from; t <= to; t += kMinuteMs) {
    samples.push_back({t, start + rate * static_cast<double>(t - from) / 1000});
  }
  return samples;
}

class NodeEnergyTest : public ::testing::Test {
 protected:
  void node(const std::string& host,
            const std::string& what,
            Samples samples,
            const std::string& source = "redfish") {
    std::map<std::string, std::string> labels{{"hostname", host}, {"domain", "node"}};
    if (what == "node") {
      labels["source"] = source;
    }
    tsdb_.add("ceems_" + what + "_energy_joules_total", labels, std::move(samples));
  }
  void unit(const std::string& host, const std::string& uuid, Samples samples) {
    tsdb_.add("ceems_compute_unit_idle_energy_joules_total",
              {{"hostname", host}, {"uuid", uuid}, {"domain", "node"}}, std::move(samples));
  }
  store::NodeUpdate read(std::int64_t start, std::int64_t end) {
    const NodeSource source{.cluster_id = "hpc", .client = tsdb_.client(), .cluster_label = ""};
    auto update =
        read_node_energy(source, {.start_ms = start, .end_ms = end, .day_ms = kYearBegins});
    EXPECT_TRUE(update) << update.error().message;
    return update.value_or(store::NodeUpdate{});
  }

  FakeTsdb tsdb_;
};

TEST_F(NodeEnergyTest, LeavesOutWhatNoNodeCanDraw) {
  node("n1", "node", watts(400, kYearBegins - 10 * kMinuteMs, kYearBegins + 2 * kHourMs));
  Samples jumps = watts(400, kYearBegins - 10 * kMinuteMs, kYearBegins + 2 * kHourMs);
  for (std::size_t i = jumps.size() / 2; i < jumps.size(); ++i) {
    jumps[i].value += 1e300;
  }
  node("n2", "node", jumps);
  node("n3", "node", watts(400, kYearBegins - 10 * kMinuteMs, kYearBegins + 2 * kHourMs));
  node("n3", "system", jumps);
  const store::NodeUpdate update = read(kYearBegins, kYearBegins + 2 * kHourMs);
  ASSERT_EQ(update.energies.size(), 2U);
  EXPECT_EQ(update.energies[0].node, "n1");
  EXPECT_NEAR(static_cast<double>(update.energies[0].energy), 0.8 * kUnitsOfKwh, 1e3);
  EXPECT_EQ(update.energies[1].node, "n3");
  EXPECT_GT(update.energies[1].system, 0) << "bounded, no garbage";
}

TEST_F(NodeEnergyTest, IsDividedIntoParts) {
  node("n1", "node", watts(400, kYearBegins - 10 * kMinuteMs, kYearBegins + 2 * kHourMs, 1e9));
  node("n1", "system", watts(20, kYearBegins - 10 * kMinuteMs, kYearBegins + 2 * kHourMs, 1e6));
  node("n1", "unallocated",
       watts(50, kYearBegins - 10 * kMinuteMs, kYearBegins + 2 * kHourMs, 5e5));
  unit("n1", "7", watts(30, kYearBegins - 10 * kMinuteMs, kYearBegins + 2 * kHourMs, 12));
  tsdb_.add("ceems_node_info", {{"hostname", "n1"}, {"cpu_model", "EPYC"}, {"gpu_model", "H100"}},
            {{kYearBegins, 1}});
  tsdb_.add("ceems_cpu_count", {{"hostname", "n1"}}, {{kYearBegins, 128}});
  tsdb_.add("ceems_gpu_info", {{"hostname", "n1"}, {"index", "0"}}, {{kYearBegins, 1}});
  tsdb_.add("ceems_gpu_info", {{"hostname", "n1"}, {"index", "1"}}, {{kYearBegins, 1}});
  tsdb_.add("ceems_energy_source_info",
            {{"hostname", "n1"}, {"domain", "node"}, {"source", "redfish"}, {"method", "measured"}},
            {{kYearBegins, 1}});
  const auto update = read(kYearBegins, kYearBegins + kHourMs);
  ASSERT_EQ(update.energies.size(), 1U);
  const store::NodeEnergy& one = update.energies.front();
  EXPECT_EQ(one.node, "n1");
  EXPECT_EQ(one.energy, 400'000'000);  // 0.4 kWh
  EXPECT_EQ(one.system, 20'000'000);
  EXPECT_EQ(one.unallocated, 50'000'000);
  EXPECT_EQ(one.idle, 30'000'000);
  EXPECT_EQ(one.modelled, 0);
  EXPECT_EQ(one.covered_ms, kHourMs);
  ASSERT_EQ(update.facts.size(), 1U);
  EXPECT_EQ(update.facts.front().node_class, "EPYC, H100");
  EXPECT_EQ(update.facts.front().source, "redfish");
  EXPECT_EQ(update.facts.front().cpus, 128);
  EXPECT_EQ(update.facts.front().gpus, 2);
  EXPECT_EQ(tsdb_.queries_asked().size(), 3U);
}

TEST_F(NodeEnergyTest, SumsDoNotDependOnTheWindows) {
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same each time
  const auto pick = [&random](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  double node_joules = 0;
  Samples samples;
  for (std::int64_t t = kYearBegins - kMinuteMs; t <= kYearBegins + 20 * kHourMs;
       t += pick(5'000, 60'000)) {
    node_joules += samples.empty() ? 0 : static_cast<double>(pick(0, 30'000));
    samples.push_back({t, node_joules});
  }
  const double first = samples.front().value;
  const double last = samples.back().value;
  node("n1", "node", samples);
  node("n1", "system", samples);
  std::int64_t sum = 0;
  std::int64_t covered = 0;
  for (std::int64_t t = kYearBegins - kMinuteMs; t < kYearBegins + 20 * kHourMs;) {
    const std::int64_t end = std::min(t + pick(300'000, kHourMs), kYearBegins + 20 * kHourMs);
    for (const auto& one : read(t, end).energies) {
      sum += one.energy;
      covered += one.covered_ms;
      EXPECT_EQ(one.energy, one.system);
    }
    t = end;
  }
  const double kwh = (last - first) / kJoulesOfKwh;
  EXPECT_NEAR(static_cast<double>(sum) / kUnitsOfKwh, kwh, 1e-6 * kwh);
  EXPECT_EQ(covered, samples.back().time_ms - samples.front().time_ms);
}

TEST_F(NodeEnergyTest, CountsWhatIsKnownOnly) {
  // A restart of the exporter: the counter begins again.
  Samples restarted = watts(360, kYearBegins - 5 * kMinuteMs, kYearBegins + 10 * kMinuteMs, 1000);
  const Samples again = watts(360, kYearBegins + 11 * kMinuteMs, kYearBegins + 20 * kMinuteMs, 60);
  restarted.insert(restarted.end(), again.begin(), again.end());
  node("restarted", "node", restarted);
  // First seen in the window: what it counted before is of another time.
  node("new", "node", watts(360, kYearBegins + 30 * kMinuteMs, kYearBegins + kHourMs, 9e9));
  // A pause of 20 min is not covered.
  Samples paused = watts(360, kYearBegins - 5 * kMinuteMs, kYearBegins + 10 * kMinuteMs);
  paused.push_back({kYearBegins + 30 * kMinuteMs, 9e9});
  node("paused", "node", paused);
  // Idle energy of a unit that began while its node was read counts from 0, and of one that ran
  // before only what it gained.
  node("units", "node", watts(360, kYearBegins, kYearBegins + kHourMs));
  unit("units", "late", watts(36, kYearBegins + 10 * kMinuteMs, kYearBegins + 20 * kMinuteMs, 100));
  unit("units", "old", watts(36, kYearBegins, kYearBegins + 10 * kMinuteMs, 5e8));
  unit("gone", "x", watts(36, kYearBegins, kYearBegins + 10 * kMinuteMs));
  // More idle energy than the units of the node used is a mistake of rounding.
  node("clamped", "node", watts(100, kYearBegins, kYearBegins + kHourMs));
  node("clamped", "system", watts(80, kYearBegins, kYearBegins + kHourMs));
  unit("clamped", "y", watts(90, kYearBegins, kYearBegins + kHourMs));
  tsdb_.add(
      "ceems_energy_source_info",
      {{"hostname", "clamped"}, {"domain", "node"}, {"source", "redfish"}, {"method", "modelled"}},
      {{kYearBegins, 1}});
  std::map<std::string, store::NodeEnergy> nodes;
  for (const auto& one : read(kYearBegins, kYearBegins + kHourMs).energies) {
    nodes[one.node] = one;
  }
  ASSERT_EQ(nodes.size(), 5U);
  const auto kwh = [](double joules) { return std::llround(joules / kJoulesOfKwh * kUnitsOfKwh); };
  EXPECT_EQ(nodes["restarted"].energy, kwh(360.0 * 19 * 60 + 60));
  EXPECT_EQ(nodes["restarted"].covered_ms, 20 * kMinuteMs);
  EXPECT_EQ(nodes["new"].energy, kwh(360.0 * 30 * 60));
  EXPECT_EQ(nodes["new"].covered_ms, 30 * kMinuteMs);
  EXPECT_EQ(nodes["new"].modelled, nodes["new"].energy);  // of a source that does not say how
  EXPECT_EQ(nodes["paused"].covered_ms, 10 * kMinuteMs);
  EXPECT_EQ(nodes["paused"].energy, kwh(360.0 * 10 * 60));
  EXPECT_EQ(nodes["units"].idle, kwh(100 + 36.0 * 600 + 36.0 * 600));
  EXPECT_EQ(nodes["clamped"].idle, kwh(20.0 * 3600));
  EXPECT_EQ(nodes["clamped"].modelled, nodes["clamped"].energy);
}

TEST_F(NodeEnergyTest, AsksForTheClusterOnlyAndReportsErrors) {
  const NodeSource source{
      .cluster_id = "a\"b", .client = tsdb_.client(), .cluster_label = "ceems_id"};
  ASSERT_TRUE(read_node_energy(
      source, {.start_ms = kYearBegins, .end_ms = kYearBegins + kHourMs, .day_ms = kYearBegins}));
  for (const std::string& query : tsdb_.queries_asked()) {
    EXPECT_NE(query.find(R"(ceems_id="a\"b")"), std::string::npos) << query;
  }
  tsdb_.override_answer = [](const auto& /*request*/) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "down"));
  };
  EXPECT_FALSE(read_node_energy(
      source, {.start_ms = kYearBegins, .end_ms = kYearBegins + kHourMs, .day_ms = kYearBegins}));
}

TEST(NodeWindows, EndWithTheDay) {
  const auto paris = TimeZone::find("Europe/Paris").value();
  const std::int64_t midnight = kYearBegins - kHourMs;
  EXPECT_EQ(next_node_window(midnight, midnight + 4 * kMinuteMs, paris).end_ms, midnight);
  EXPECT_EQ(
      next_node_window(midnight, midnight + 5 * kMinuteMs + 1, paris),
      (NodeWindow{.start_ms = midnight, .end_ms = midnight + 5 * kMinuteMs, .day_ms = midnight}));
  EXPECT_EQ(next_node_window(midnight, midnight + 99 * kHourMs, paris).end_ms, midnight + kHourMs);
  const std::int64_t late = midnight + 24 * kHourMs - kMinuteMs;
  EXPECT_EQ(next_node_window(late, late + kHourMs, paris).end_ms, midnight + 24 * kHourMs);
  EXPECT_EQ(next_node_window(late, late + 30'000, paris).end_ms, late);
  // The days of the changes of the clock have 23 and 25 hours.
  const std::int64_t spring = 1'774'738'800'000;  // 2026-03-29T00:00 in Paris
  std::int64_t until = spring;
  int parts = 0;
  while (next_node_window(until, spring + 99 * kHourMs, paris).day_ms == spring) {
    until = next_node_window(until, spring + 99 * kHourMs, paris).end_ms;
    ++parts;
  }
  EXPECT_EQ(parts, 23);
  EXPECT_EQ(until, spring + 23 * kHourMs);
}

TEST_F(NodeEnergyTest, FillsTheDaysOnce) {
  const testing::TempDir dir;
  const testing::FakeClock clock;
  auto database =
      store::open_database({.directory = dir.path().string(), .time_zone = "UTC"}, clock);
  ASSERT_TRUE(database);
  store::Writer& writer = (*database)->writer();
  node("n1", "node", watts(1000, kYearBegins - kHourMs, kYearBegins + 60 * kHourMs));
  auto source = std::make_shared<NodeSource>();
  source->cluster_id = "hpc";
  source->client = tsdb_.client();
  NodeProgress progress({source}, TimeZone());
  const auto round = [&](std::int64_t now) {
    int parts = 0;
    progress.begin_round(now);
    while (const auto request = progress.next(writer)) {
      progress.take(read_node_energy(*request->source, request->window), writer);
      ++parts;
    }
    return parts;
  };
  // From the beginning of the month.
  EXPECT_EQ(round(kYearBegins + 30 * kHourMs + 2 * kMinuteMs), 30);
  EXPECT_EQ(round(kYearBegins + 30 * kHourMs + 3 * kMinuteMs), 0);
  tsdb_.override_answer = [](const auto& /*request*/) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "down"));
  };
  EXPECT_EQ(round(kYearBegins + 50 * kHourMs), 1);
  tsdb_.override_answer = nullptr;
  // Another program goes on where this one ended.
  progress = NodeProgress({source}, TimeZone());
  EXPECT_EQ(round(kYearBegins + 48 * kHourMs + 2 * kMinuteMs), 18);
  const auto days = (*database)->reader().node_days({}, {0, kYearBegins + 99 * kHourMs});
  ASSERT_TRUE(days);
  ASSERT_EQ(days->size(), 2U);
  EXPECT_EQ(days->at(0).sum.energy, 24'000'000'000);
  EXPECT_EQ(days->at(1).sum.energy, 24'000'000'000);
  EXPECT_EQ(days->at(1).day_ms, kYearBegins + 24 * kHourMs);
}

}  // namespace
}  // namespace ceems::ingest
