#include "tool/rules/relabel.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "tool/rules/render.h"

namespace ceems::tool::rules {
namespace {

constexpr std::array<std::pair<GpuKind, std::string_view>, 3> kSeries{{
    {GpuKind::kNvidia, "DCGM_FI_DEV_POWER_USAGE_INSTANT"},
    {GpuKind::kAmdSmi, "amd_gpu_power"},
    {GpuKind::kAmdDevice, "gpu_power_usage"},
}};

struct Relabel {
  std::vector<std::string_view> sources = {};
  std::string_view target = {};
  std::string_view regex;
  std::string_view replacement = {};
  std::string_view action;
};

std::vector<Relabel> relabels(GpuKind kind) {
  switch (kind) {
    case GpuKind::kNvidia:
      return {{.sources = {"modelName", "UUID"},
               .target = "gpuuuid",
               .regex = "NVIDIA(.*);(.*)",
               .replacement = "$2",
               .action = "replace"},
              {.sources = {"modelName", "GPU_I_ID"},
               .target = "gpuiid",
               .regex = "NVIDIA(.*);(.*)",
               .replacement = "$2",
               .action = "replace"},
              {.regex = "UUID", .action = "labeldrop"},
              {.regex = "GPU_I_ID", .action = "labeldrop"}};
    case GpuKind::kAmdSmi:
      return {{.sources = {"gpu_power"},
               .target = "index",
               .regex = "(.*)",
               .replacement = "$1",
               .action = "replace"},
              {.sources = {"index", "gpu_use_percent"},
               .target = "index",
               .regex = ";(.+)",
               .replacement = "$1",
               .action = "replace"},
              {.sources = {"index", "gpu_memory_use_percent"},
               .target = "index",
               .regex = ";(.+)",
               .replacement = "$1",
               .action = "replace"},
              {.regex = "gpu_power", .action = "labeldrop"},
              {.regex = "gpu_use_percent", .action = "labeldrop"},
              {.regex = "gpu_memory_use_percent", .action = "labeldrop"}};
    case GpuKind::kAmdDevice:
      return {{.sources = {"gpu_id"},
               .target = "index",
               .regex = "(.*)",
               .replacement = "$1",
               .action = "replace"},
              {.sources = {"gpu_partition_id"},
               .target = "gpuiid",
               .regex = "(.*)",
               .replacement = "$1",
               .action = "replace"},
              {.regex = "gpu_id", .action = "labeldrop"},
              {.regex = "gpu_partition_id", .action = "labeldrop"}};
  }
  return {};
}

std::string text_of(const Relabel& relabel) {
  std::vector<std::string> lines;
  if (!relabel.sources.empty()) {
    std::string list = "source_labels:";
    for (const std::string_view source : relabel.sources) {
      list += fmt::format("\n          - {}", source);
    }
    lines.push_back(list);
    lines.push_back(fmt::format("target_label: {}", relabel.target));
  }
  lines.push_back(fmt::format("regex: {}", relabel.regex));
  if (!relabel.replacement.empty()) {
    lines.push_back(fmt::format("replacement: {}", relabel.replacement));
  }
  lines.push_back(fmt::format("action: {}", relabel.action));
  return fmt::format("      - {}\n", fmt::join(lines, "\n        "));
}

}  // namespace

Result<std::vector<RelabelledJob>> gpu_exporter_jobs(tsdb::Client& client, TimeRange range) {
  std::vector<std::string> names;
  for (const auto& [kind, name] : kSeries) {
    names.emplace_back(name);
  }
  CEEMS_TRY_IN("error fetching series", series,
               client.series({fmt::format("{{__name__=~\"{}\"}}", fmt::join(names, "|"))},
                             range.start_ms, range.end_ms));
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string, std::less<>>> exported;
  for (const tsdb::Labels& labels : series) {
    const std::string job(labels.get("job"));
    if (!exported.contains(job)) {
      order.push_back(job);
    }
    exported[job].emplace(labels.get("__name__"));
  }
  std::vector<RelabelledJob> jobs;
  for (const std::string& job : order) {
    const auto* const kind = std::ranges::find_if(
        kSeries, [&](const auto& known) { return exported[job].contains(known.second); });
    if (kind != kSeries.end()) {
      jobs.push_back({.name = job, .kind = kind->first});
    }
  }
  return jobs;
}

std::string relabel_text(const std::vector<RelabelledJob>& jobs) {
  if (jobs.empty()) {
    return "scrape_configs: []\n";
  }
  std::string out = "scrape_configs:\n";
  for (const RelabelledJob& job : jobs) {
    out += fmt::format("  - job: {}\n    metric_relabel_configs:\n", yaml_scalar(job.name));
    for (const Relabel& relabel : relabels(job.kind)) {
      out += text_of(relabel);
    }
  }
  return out;
}

std::string relabel_json(const std::vector<RelabelledJob>& jobs) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().key("scrape_configs").begin_array();
  for (const RelabelledJob& job : jobs) {
    json.begin_object().member("job", job.name).key("metric_relabel_configs").begin_array();
    for (const Relabel& relabel : relabels(job.kind)) {
      json.begin_object();
      if (!relabel.sources.empty()) {
        json.key("source_labels").begin_array();
        for (const std::string_view source : relabel.sources) {
          json.value(source);
        }
        json.end_array().member("target_label", relabel.target);
      }
      json.member("regex", relabel.regex);
      if (!relabel.replacement.empty()) {
        json.member("replacement", relabel.replacement);
      }
      json.member("action", relabel.action).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace ceems::tool::rules
