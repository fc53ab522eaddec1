#include "tool/rules/queries.h"

#include <array>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "tool/rules/render.h"

namespace ceems::tool::rules {
namespace {

enum class Form { kAverage, kKwh, kGrams };

struct Metric {
  std::string_view key;
  std::string_view series;
  Form form;
};

constexpr std::array<Metric, 8> kMetrics{{
    {"avg_cpu_mem_usage", "uuid:ceems_cpu_memory_usage:ratio", Form::kAverage},
    {"avg_cpu_usage", "uuid:ceems_cpu_usage:ratio_irate", Form::kAverage},
    {"avg_gpu_mem_usage", "uuid:ceems_gpu_memory_usage:ratio", Form::kAverage},
    {"avg_gpu_usage", "uuid:ceems_gpu_usage:ratio", Form::kAverage},
    {"total_cpu_emissions_gms", "uuid:ceems_host_emissions_g_s:pue", Form::kGrams},
    {"total_cpu_energy_usage_kwh", "uuid:ceems_host_power_watts:pue", Form::kKwh},
    {"total_gpu_emissions_gms", "uuid:ceems_gpu_emissions_g_s:pue", Form::kGrams},
    {"total_gpu_energy_usage_kwh", "uuid:ceems_gpu_power_watts:pue", Form::kKwh},
}};

// Back-ticks: the updater may escape ids with backslashes, which double quotes do not allow.
constexpr std::string_view kUnits = "uuid=~`{{.UUIDs}}`";

std::string average(std::string_view series) {
  return fmt::format("avg_over_time(avg by (uuid) ({}{{{}}} > 0 < inf)[{{{{.Range}}}}:])", series,
                     kUnits);
}

/// A value per second, summed at each scrape and multiplied with the time between them.
std::string total(std::string_view series, std::string_view more, std::string_view divisor) {
  return fmt::format(
      "sum_over_time(sum by (uuid) ({}{{{}{}}} > 0 < "
      "inf)[{{{{.Range}}}}:{{{{.ScrapeInterval}}}}]) * {{{{.ScrapeIntervalMilli}}}} / {}",
      series, kUnits, more, divisor);
}

bool is_label_word(std::string_view text) {
  return !text.empty() && has_only_words(text, "_-");
}

}  // namespace

Result<std::vector<UpdaterQuery>> updater_queries(tsdb::Client& client, TimeRange range) {
  std::vector<UpdaterQuery> queries;
  for (const Metric& metric : kMetrics) {
    const std::string name(metric.series);
    const bool emissions = metric.form == Form::kGrams;
    // The records of all units are never listed: one value of a label shows that they exist.
    CEEMS_TRY_IN("error fetching series label values", found,
                 client.label_values(emissions ? "provider" : "__name__",
                                     {fmt::format("{{__name__=\"{}\"}}", name)}, range.start_ms,
                                     range.end_ms));
    const std::string key(metric.key);
    for (const std::string& value : found) {
      if (metric.form == Form::kAverage) {
        queries.push_back({.metric = key, .sub_metric = "global", .query = average(name)});
      } else if (metric.form == Form::kKwh) {
        queries.push_back(
            {.metric = key, .sub_metric = "total", .query = total(name, "", "3.6e9")});
      } else if (is_label_word(value)) {
        queries.push_back({.metric = key,
                           .sub_metric = value + "_total",
                           .query = total(name, fmt::format(",provider=\"{}\"", value), "1e3")});
      }
    }
  }
  return queries;
}

std::string updater_queries_text(const std::vector<UpdaterQuery>& queries) {
  std::string out = "---\n\nqueries:";
  std::string_view metric;
  for (const UpdaterQuery& query : queries) {
    if (query.metric != metric) {
      out += fmt::format("{}\n  {}:", metric.empty() ? "" : "\n", query.metric);
      metric = query.metric;
    }
    out += fmt::format("\n    {}: {}\n", yaml_scalar(query.sub_metric), query.query);
  }
  return out + (queries.empty() ? "\n\n" : "\n\n\n");
}

}  // namespace ceems::tool::rules
