#pragma once

#include <string_view>
#include <type_traits>

#include "report/report.h"

namespace ceems::report {

/// What a member of a report is called in its JSON and in stored reports, which may leave it out
/// (empty) and nest nothing but lists.
struct Member {
  std::string_view json, stored;
  bool null_if_empty = false;  ///< an empty text is not known
};

/// The members of a part, once for all forms and in their order; `part` is constant unless it is
/// read. A visitor takes visit(Member, value), begin(name) and end() around what JSON has in an
/// object, and advice(finding) for what a finding says.
template <typename Visitor, typename Part>
void visit_members(Visitor&& visit, Part& part) {
  using Kind = std::remove_const_t<Part>;
  if constexpr (std::is_same_v<Kind, GpuUse>) {
    visit({"index", "index"}, part.index);
    visit({"uuid", "uuid"}, part.uuid);
    visit({"busy", "busy"}, part.busy);
    visit({"sm", "sm"}, part.sm);
    visit({"mem_peak_bytes", "mem_peak"}, part.mem_peak);
    visit({"mem_total_bytes", "mem_total"}, part.mem_total);
  } else if constexpr (std::is_same_v<Kind, NodeUse>) {
    visit({"node", "node"}, part.node);
    visit({"cpus", "cpus"}, part.cpus);
    visit({"cpu_seconds", "cpu_seconds"}, part.cpu_seconds);
    visit({"mem_peak_bytes", "mem_peak"}, part.mem_peak);
    visit({"mem_alloc_bytes", "mem_alloc"}, part.mem_alloc);
    visit({"gpus", "gpus"}, part.gpus);
  } else if constexpr (std::is_same_v<Kind, Phase>) {
    visit({"region", "region"}, part.region);
    visit({"count", "count"}, part.count);
    visit({"nodes", "nodes"}, part.nodes);
    visit({"seconds", "seconds"}, part.seconds);
    visit({"share", "share"}, part.share);
    visit({"kwh", "kwh"}, part.kwh);
    visit({"self_kwh", "self_kwh"}, part.self_kwh);
    visit({"watts", "watts"}, part.watts);
    visit({"slowest", "slowest", true}, part.slowest);
    visit({"longer", "longer"}, part.longer);
  } else if constexpr (std::is_same_v<Kind, EarlierResult>) {
    visit({"uuid", "uuid"}, part.uuid);
    visit({"started_at_ts", "started_ms"}, part.started_ms);
    visit({"joules_per", "joules_per"}, part.joules);
  } else if constexpr (std::is_same_v<Kind, JobResult>) {
    visit({"result", "result"}, part.result);
    visit({"unit", "unit", true}, part.unit);
    visit({"n", "n"}, part.n);
    visit({"joules_per", "joules_per"}, part.joules);
    visit({"family_joules_per", "family_joules_per"}, part.family_joules);
    visit({"family", "family"}, part.family);
  } else if constexpr (std::is_same_v<Kind, Merit>) {
    visit({"fom", "fom"}, part.fom);
    visit({"unit", "unit", true}, part.unit);
    visit({"last", "last"}, part.last);
    visit({"mean", "mean"}, part.mean);
  } else if constexpr (std::is_same_v<Kind, advice::Line>) {
    visit({"type", "type"}, part.type);
    visit({"was", "was"}, part.was);
  } else if constexpr (std::is_same_v<Kind, advice::Finding>) {
    visit({"rule", "rule"}, part.rule);
    visit({"severity", "severity"}, part.severity);
    visit({"confidence", "confidence"}, part.confidence);
    visit({"runs", "runs"}, part.runs);
    visit({"", "say"}, part.say);
    visit({"values", "values"}, part.values);
    visit.advice(part);
  } else {
    static_assert(std::is_same_v<Kind, Report>);
    visit({"cluster_id", "cluster_id"}, part.cluster_id);
    visit({"uuid", "uuid"}, part.uuid);
    visit({"started_at_ts", "started_ms"}, part.started_ms);
    visit({"ended_at_ts", "ended_ms"}, part.ended_ms);
    visit({"", "started_text"}, part.started_text);
    visit({"state", "state"}, part.state);
    visit({"coverage", "coverage"}, part.coverage);
    visit({"source", "from_jobstats"}, part.from_jobstats);
    visit.begin("job");
    visit({"name", "job_name"}, part.job.name);
    visit({"user", "job_user"}, part.job.user);
    visit({"project", "job_project"}, part.job.project);
    visit({"partition", "job_partition", true}, part.job.partition);
    visit({"", "job_qos"}, part.job.qos);
    visit({"state", "job_state"}, part.job.state);
    visit({"", "job_manager"}, part.job.manager);
    visit({"nodes", "job_nodes"}, part.job.nodes);
    visit({"cpus", "job_cpus"}, part.job.cpus);
    visit({"gpus", "job_gpus"}, part.job.gpus);
    visit({"elapsed_s", "job_elapsed"}, part.job.elapsed);
    visit({"limit_s", "job_limit"}, part.job.limit);
    visit({"waited_s", "job_waited"}, part.job.waited);
    visit({"array", "job_array", true}, part.job.array);
    visit.end();
    visit.begin("use");
    visit({"cpu", "use_cpu"}, part.use.cpu);
    visit({"mem", "use_mem"}, part.use.mem);
    visit({"mem_peak_node_bytes", "use_mem_peak_node"}, part.use.mem_peak_node);
    visit({"mem_alloc_node_bytes", "use_mem_alloc_node"}, part.use.mem_alloc_node);
    visit({"gpu_busy", "use_gpu_busy"}, part.use.gpu_busy);
    visit({"gpu_sm", "use_gpu_sm"}, part.use.gpu_sm);
    visit({"gpu_mem", "use_gpu_mem"}, part.use.gpu_mem);
    visit.end();
    visit({"nodes", "nodes"}, part.nodes);
    visit.begin("energy");
    visit({"kwh", "kwh"}, part.energy.kwh);
    visit({"idle_kwh", "idle_kwh"}, part.energy.idle_kwh);
    visit({"not_used_kwh", "not_used_kwh"}, part.energy.not_used_kwh);
    visit({"domains", "domains"}, part.energy.domains);
    visit({"method", "method", true}, part.energy.method);
    visit.end();
    visit.begin("co2");
    visit({"g", "grams"}, part.co2.grams);
    visit({"provider", "provider", true}, part.co2.provider);
    visit.end();
    visit.begin("cost");
    visit({"amount", "cost"}, part.cost.amount);
    visit({"currency", "currency", true}, part.cost.currency);
    visit.end();
    visit.begin("compared");
    visit({"family_n", "family_runs"}, part.compared.runs);
    visit({"family_median_kwh", "family_kwh"}, part.compared.median_kwh);
    visit({"family_cpu_low", "family_cpu_low"}, part.compared.cpu_low);
    visit({"family_cpu_high", "family_cpu_high"}, part.compared.cpu_high);
    visit({"family_mem_median", "family_mem"}, part.compared.mem_median);
    visit({"family_gpu_low", "family_gpu_low"}, part.compared.gpu_low);
    visit({"family_gpu_high", "family_gpu_high"}, part.compared.gpu_high);
    visit({"project_month_share", "month_share"}, part.compared.project_month_share);
    visit.end();
    visit({"phases", "phases"}, part.phases);
    visit({"results", "results"}, part.results);
    visit({"fom", "fom"}, part.merits);
    visit({"findings", "findings"}, part.findings);
  }
}

}  // namespace ceems::report
