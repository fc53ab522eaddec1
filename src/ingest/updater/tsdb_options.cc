#include "ingest/updater/tsdb_options.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "config/section.h"
#include "store/schema/tables.h"

namespace ceems::ingest {
namespace {

using model::Metric;

std::optional<Metric> metric_named(std::string_view name) {
  for (std::size_t i = 0; i < model::kMetricCount; ++i) {
    const auto metric = static_cast<Metric>(i);
    if (store::column_name(metric) == name) {
      return metric;
    }
  }
  return std::nullopt;
}

// The three forms of the default queries. %s is the series, %e are further matchers, %c is a
// divisor.
constexpr std::string_view kAverage =
    R"(avg_over_time(avg by (uuid) (%s{uuid=~"{{.UUIDs}}"} >= 0 < inf)[{{.Range}}:]))";
constexpr std::string_view kSum =
    R"(sum_over_time(sum by (uuid) (%s{uuid=~"{{.UUIDs}}"%e} >= 0 < inf)[{{.Range}}:{{.ScrapeInterval}}]) * {{.ScrapeIntervalMilli}} / %c)";
constexpr std::string_view kIncrease =
    R"(sum by (uuid) (increase(%s{uuid=~"{{.UUIDs}}"}[{{.Range}}]) >= 0 < inf))";

struct DefaultQuery {
  Metric metric;
  std::string_view key;
  std::string_view form;
  std::string_view series;
  std::string_view matchers;
  std::string_view divisor;
};

// Watts or g/s, summed at every scrape interval and multiplied by its length in ms. Dividing by
// 3.6e9 gives kWh, by 1e3 grams.
constexpr std::array<DefaultQuery, 20> kDefaults{{
    {Metric::kAvgCpuUsage, "global", kAverage, "uuid:ceems_cpu_usage:ratio_irate", "", ""},
    {Metric::kAvgCpuMemUsage, "global", kAverage, "uuid:ceems_cpu_memory_usage:ratio", "", ""},
    {Metric::kTotalCpuEnergyUsageKwh, "total", kSum, "uuid:ceems_host_power_watts:pue", "",
     "3.6e9"},
    {Metric::kTotalCpuEmissionsGms, "rte_total", kSum, "uuid:ceems_host_emissions_g_s:pue",
     R"(,provider="rte")", "1e3"},
    {Metric::kTotalCpuEmissionsGms, "emaps_total", kSum, "uuid:ceems_host_emissions_g_s:pue",
     R"(,provider="emaps")", "1e3"},
    {Metric::kTotalCpuEmissionsGms, "owid_total", kSum, "uuid:ceems_host_emissions_g_s:pue",
     R"(,provider="owid")", "1e3"},
    {Metric::kAvgGpuUsage, "global", kAverage, "uuid:ceems_gpu_usage:ratio", "", ""},
    {Metric::kAvgGpuMemUsage, "global", kAverage, "uuid:ceems_gpu_memory_usage:ratio", "", ""},
    {Metric::kTotalGpuEnergyUsageKwh, "total", kSum, "uuid:ceems_gpu_power_watts:pue", "", "3.6e9"},
    {Metric::kTotalGpuEmissionsGms, "rte_total", kSum, "uuid:ceems_gpu_emissions_g_s:pue",
     R"(,provider="rte")", "1e3"},
    {Metric::kTotalGpuEmissionsGms, "emaps_total", kSum, "uuid:ceems_gpu_emissions_g_s:pue",
     R"(,provider="emaps")", "1e3"},
    {Metric::kTotalGpuEmissionsGms, "owid_total", kSum, "uuid:ceems_gpu_emissions_g_s:pue",
     R"(,provider="owid")", "1e3"},
    {Metric::kTotalIoWriteStats, "bytes_total", kIncrease, "ceems_ebpf_write_bytes_total", "", ""},
    {Metric::kTotalIoWriteStats, "requests_total", kIncrease, "ceems_ebpf_write_requests_total", "",
     ""},
    {Metric::kTotalIoWriteStats, "errors_total", kIncrease, "ceems_ebpf_write_errors_total", "",
     ""},
    {Metric::kTotalIoReadStats, "bytes_total", kIncrease, "ceems_ebpf_read_bytes_total", "", ""},
    {Metric::kTotalIoReadStats, "requests_total", kIncrease, "ceems_ebpf_read_requests_total", "",
     ""},
    {Metric::kTotalIoReadStats, "errors_total", kIncrease, "ceems_ebpf_read_errors_total", "", ""},
    {Metric::kTotalIngressStats, "bytes_total", kIncrease, "ceems_ebpf_ingress_bytes_total", "",
     ""},
    {Metric::kTotalEgressStats, "bytes_total", kIncrease, "ceems_ebpf_egress_bytes_total", "", ""},
}};

std::string fill(std::string_view form, const DefaultQuery& query) {
  std::string text;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      text += form[i];
      continue;
    }
    switch (form[++i]) {
      case 's':
        text += query.series;
        break;
      case 'e':
        text += query.matchers;
        break;
      default:
        text += query.divisor;
    }
  }
  return text;
}

Result<std::vector<MetricQuery>> read_queries(const config::Node& queries) {
  std::vector<MetricQuery> result;
  for (const auto& [name, sub_metrics] : queries.entries()) {
    if (!sub_metrics.is_map()) {
      return fail(sub_metrics.error("expected a map of sub-metric to query"));
    }
    const auto metric = metric_named(name);
    for (const auto& [key, node] : sub_metrics.entries()) {
      CEEMS_TRY(text, node.as_string());
      auto query = tsdb::QueryTemplate::parse(text);
      if (!query) {
        return fail(node.error(query.error().message));
      }
      if (metric) {
        result.push_back({.metric = *metric, .key = key, .query = std::move(*query)});
      }
    }
    if (!metric) {
      log::warn("queries of an unknown metric are left out", {{"metric", name}});
    }
  }
  return result;
}

bool selects_everything(std::string_view selector) {
  return selector.find_first_not_of(" \t{}") == std::string_view::npos;
}

}  // namespace

std::vector<MetricQuery> default_queries() {
  std::vector<MetricQuery> queries;
  for (const auto& query : kDefaults) {
    auto parsed = tsdb::QueryTemplate::parse(fill(query.form, query));
    CEEMS_CHECK(parsed.has_value());
    queries.push_back(
        {.metric = query.metric, .key = std::string(query.key), .query = std::move(*parsed)});
  }
  return queries;
}

Result<TsdbUpdaterOptions> read_tsdb_updater_options(const config::Node& extra) {
  TsdbUpdaterOptions options;
  std::int64_t max_series = 0;
  double min_samples = 0;
  config::Section section(extra);
  section.integer("query_max_series", max_series)
      .refuse(max_series < 0, "query_max_series", "query_max_series must be more than 0")
      .number("query_min_samples", min_samples)
      .refuse(!(min_samples >= 0 && min_samples <= 1), "query_min_samples",
              "query_min_samples must be between (0, 1]")
      .duration("cutoff_duration", options.cutoff)
      .duration("scrape_interval", options.scrape_interval)
      .duration("evaluation_interval", options.evaluation_interval)
      .boolean("delete_ignored", options.delete_ignored)
      .boolean("delete_whole_series", options.delete_whole_series)
      .list("labels_to_drop", options.labels_to_drop)
      .refuse(std::ranges::any_of(options.labels_to_drop, selects_everything), "labels_to_drop",
              "an empty selector would delete everything")
      .number("emission_factor", options.emission_factor)
      .refuse(!(options.emission_factor >= 0 && options.emission_factor < 1e6), "emission_factor",
              "emission_factor must be in grams per kWh, 0 or more")
      .text("country_code", options.country_code);
  // 0 means the default, as if the key were absent.
  options.query_max_series = max_series == 0 ? options.query_max_series : max_series;
  options.query_min_samples = min_samples == 0 ? options.query_min_samples : min_samples;
  const auto queries = extra["queries"];
  section.refuse(queries.present() && !queries.is_map(), "queries", "expected a map of metrics");
  if (!section.ok()) {
    return fail(section.done().error());
  }
  if (!queries.entries().empty()) {
    CEEMS_TRY(value, read_queries(queries));
    options.queries = std::move(value);
    options.unit_counters = false;
  } else {
    options.queries = default_queries();
  }
  CEEMS_TRY(section.boolean("unit_counters", options.unit_counters).done());
  return options;
}

}  // namespace ceems::ingest
