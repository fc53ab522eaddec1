// The report as one JSON object.
#include "base/json.h"

#include <utility>

#include "report/json_members.h"
#include "report/report.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

void add_job(JsonWriter& json, const Job& job) {
  json.key("job").begin_object();
  json.member("name", job.name).member("user", job.user).member("project", job.project);
  add_text(json, "partition", job.partition);
  json.member("state", job.state);
  add(json, "nodes", job.nodes);
  add(json, "cpus", job.cpus);
  add(json, "gpus", job.gpus);
  add(json, "elapsed_s", job.elapsed);
  add(json, "limit_s", job.limit);
  add(json, "waited_s", job.waited);
  add_text(json, "array", job.array);
  json.end_object();
}

void add_use(JsonWriter& json, const Use& use) {
  json.key("use").begin_object();
  add(json, "cpu", use.cpu);
  add(json, "mem", use.mem);
  add(json, "mem_peak_node_bytes", use.mem_peak_node);
  add(json, "mem_alloc_node_bytes", use.mem_alloc_node);
  add(json, "gpu_busy", use.gpu_busy);
  add(json, "gpu_sm", use.gpu_sm);
  add(json, "gpu_mem", use.gpu_mem);
  json.end_object();
}

void add_nodes(JsonWriter& json, const std::vector<NodeUse>& nodes) {
  json.key("nodes").begin_array();
  for (const NodeUse& node : nodes) {
    json.begin_object().member("node", node.node);
    add(json, "cpus", node.cpus);
    add(json, "cpu_seconds", node.cpu_seconds);
    add(json, "mem_peak_bytes", node.mem_peak);
    add(json, "mem_alloc_bytes", node.mem_alloc);
    json.key("gpus").begin_array();
    for (const GpuUse& gpu : node.gpus) {
      json.begin_object().member("index", gpu.index).member("uuid", gpu.uuid);
      add(json, "busy", gpu.busy);
      add(json, "sm", gpu.sm);
      add(json, "mem_peak_bytes", gpu.mem_peak);
      add(json, "mem_total_bytes", gpu.mem_total);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void add_cost(JsonWriter& json, const Report& report) {
  json.key("energy").begin_object();
  add(json, "kwh", report.energy.kwh);
  add(json, "idle_kwh", report.energy.idle_kwh);
  json.key("domains").begin_object();
  for (const auto& [domain, kwh] : report.energy.domains) {
    json.member(domain, kwh);
  }
  json.end_object();
  add_text(json, "method", report.energy.method);
  json.end_object();
  json.key("co2").begin_object();
  add(json, "g", report.co2.grams);
  add_text(json, "provider", report.co2.provider);
  json.end_object();
  json.key("cost").begin_object();
  add(json, "amount", report.cost.amount);
  add_text(json, "currency", report.cost.currency);
  json.end_object();
  const Compared& compared = report.compared;
  json.key("compared").begin_object();
  json.member("family_n", static_cast<std::int64_t>(compared.runs));
  add(json, "family_median_kwh", compared.median_kwh);
  add(json, "family_cpu_low", compared.cpu_low);
  add(json, "family_cpu_high", compared.cpu_high);
  add(json, "family_mem_median", compared.mem_median);
  add(json, "family_gpu_low", compared.gpu_low);
  add(json, "family_gpu_high", compared.gpu_high);
  add(json, "project_month_share", compared.project_month_share);
  json.end_object();
}

void add_finding(JsonWriter& json, const advice::Finding& finding, const View& view) {
  json.begin_object().member("rule", finding.rule);
  json.member("severity", advice::to_string(finding.severity));
  json.member("confidence", advice::to_string(finding.confidence));
  json.member("runs", static_cast<std::int64_t>(finding.runs));
  json.key("values").begin_object();
  for (const auto& [name, value] : finding.values) {
    json.member(name, value);
  }
  json.end_object();
  add_advice(json, finding, view.language);
  json.end_object();
}

}  // namespace

std::string to_json(const Report& report, const View& view) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("v", 1);
  json.member("cluster_id", report.cluster_id).member("uuid", report.uuid);
  for (const auto& [name, ms] :
       {std::pair("started_at_ts", report.started_ms), {"ended_at_ts", report.ended_ms}}) {
    if (ms > 0) {
      json.member(name, ms);
    } else {
      json.member(name, nullptr);
    }
  }
  json.member("state", to_string(report.state));
  add(json, "coverage", report.coverage);
  if (report.from_jobstats) {
    json.member("source", "js1");
  }
  add_job(json, report.job);
  add_use(json, report.use);
  add_nodes(json, report.nodes);
  add_cost(json, report);
  json.key("findings").begin_array();
  for (const advice::Finding& finding : report.findings) {
    add_finding(json, finding, view);
  }
  json.end_array().end_object();
  return text;
}

}  // namespace ceems::report
