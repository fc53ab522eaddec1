#include "ingest/updater/tsdb_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/updater/all.h"
#include "ingest/updater/tsdb_test_support.h"
#include "testing/fake_clock.h"

namespace ceems::ingest {
namespace {

using ::testing::HasSubstr;

std::string options_error(const std::string& yaml) {
  const auto node = config::parse_yaml(yaml, "c.yml");
  if (!node) {
    return node.error().message;
  }
  const UpdaterConfig config{
      .id = "t", .kind = "tsdb", .web_url = "http://localhost:9090", .web = {}, .extra = *node};
  const testing::FakeClock clock;
  const auto updater = create_updater(tsdb_updater(), config, clock);
  return updater ? "accepted" : updater.error().message;
}

TEST(TsdbUpdaterOptions, NameFileAndLineOfWhatIsWrong) {
  EXPECT_THAT(options_error("queries:\n  avg_cpu_usage:\n    global: up{{.Foo}}\n"),
              HasSubstr("c.yml:3: queries.avg_cpu_usage.global: query template: '{{.Foo}}' at "
                        "character 3"));
  EXPECT_THAT(options_error("query_max_series: -1\n"),
              HasSubstr("c.yml:1: query_max_series: query_max_series must be more than 0"));
  EXPECT_THAT(options_error("query_min_samples: 1.5\n"),
              HasSubstr("query_min_samples must be between (0, 1]"));
  EXPECT_THAT(options_error("labels_to_drop: ['{}']\n"),
              HasSubstr("an empty selector would delete everything"));
  EXPECT_THAT(options_error("emission_faktor: 3\n"),
              HasSubstr("unknown key, did you mean 'emission_factor'?"));
  EXPECT_EQ(options_error("query_batch_size: 1000\nquery_max_series: 0\n"), "accepted");
}

TEST(TsdbUpdaterOptions, QueriesReplaceTheDefaultsAndTheCounters) {
  EXPECT_EQ(options_with("cutoff_duration: 5m\n").queries.size(), 20U);
  EXPECT_TRUE(options_with("").unit_counters);
  const auto custom =
      options_with("queries:\n  avg_cpu_usage:\n    global: up\n  no_such_metric:\n    x: up\n");
  EXPECT_EQ(custom.queries.size(), 1U);
  EXPECT_FALSE(custom.unit_counters);
  EXPECT_TRUE(
      options_with("unit_counters: true\nqueries: {avg_cpu_usage: {global: up}}\n").unit_counters);
}

tsdb::QueryVariables variables() {
  return {.uuids = "12|13",
          .scrape_interval = "15s",
          .scrape_interval_milli = "15000",
          .evaluation_interval = "10s",
          .evaluation_interval_milli = "10000",
          .rate_interval = "1m0s",
          .range = "6h51m12s"};
}

TEST(DefaultQueries, AreThoseOfTheReference) {
  const auto queries = default_queries();
  ASSERT_EQ(queries.size(), 20U);
  EXPECT_EQ(queries[0].query.render(variables()),
            "avg_over_time(avg by (uuid) (uuid:ceems_cpu_usage:ratio_irate{uuid=~\"12|13\"} >= 0 < "
            "inf)[6h51m12s:])");
  EXPECT_EQ(queries[2].query.render(variables()),
            "sum_over_time(sum by (uuid) (uuid:ceems_host_power_watts:pue{uuid=~\"12|13\"} >= 0 < "
            "inf)[6h51m12s:15s]) * 15000 / 3.6e9");
  EXPECT_EQ(queries[3].key, "rte_total");
  EXPECT_EQ(queries[3].query.render(variables()),
            "sum_over_time(sum by (uuid) (uuid:ceems_host_emissions_g_s:pue{uuid=~\"12|13\","
            "provider=\"rte\"} >= 0 < inf)[6h51m12s:15s]) * 15000 / 1e3");
  EXPECT_EQ(queries[12].query.render(variables()),
            "sum by (uuid) (increase(ceems_ebpf_write_bytes_total{uuid=~\"12|13\"}[6h51m12s]) >= 0 "
            "< inf)");
}

}  // namespace
}  // namespace ceems::ingest
