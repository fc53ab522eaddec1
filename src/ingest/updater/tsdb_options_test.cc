#include "ingest/updater/tsdb_options.h"

#include <gtest/gtest.h>

namespace ceems::ingest {
namespace {

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
