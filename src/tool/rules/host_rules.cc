#include "tool/rules/host_rules.h"

#include <array>

#include <fmt/format.h>

#include "tool/rules/families.h"
#include "tool/rules/promql.h"

namespace ceems::tool::rules {
namespace {

Rule cpu_usage(const HostPlan& plan) {
  const Job& job = *plan.job;
  return {.record = "uuid:ceems_cpu_usage:ratio_irate",
          .expression = fmt::format("100 * {}\n  /\n({} > 0)", unit_cpu(job),
                                    selector("ceems_compute_unit_cpus", job))};
}

Rule memory_usage(const HostPlan& plan) {
  const Job& job = *plan.job;
  return {.record = "uuid:ceems_cpu_memory_usage:ratio",
          .expression = fmt::format("100 * {}\n  /\n({} > 0)",
                                    selector("ceems_compute_unit_memory_used_bytes", job),
                                    selector("ceems_compute_unit_memory_total_bytes", job))};
}

Rule job_cpu_usage(const HostPlan& plan) {
  const Job& job = *plan.job;
  return {.record = "job:ceems_cpu_usage:avg_ratio_irate",
          .expression = fmt::format(
              "avg by (job) (\n  100 * sum by (job, instance) ({})\n    /\n  (sum by (job, "
              "instance) ({}) > 0)\n)",
              irate(selector("ceems_cpu_seconds_total", job, R"(mode!~"idle|iowait|steal")"),
                    rate_window(job)),
              selector("ceems_cpu_count", job))};
}

Rule job_memory_usage(const HostPlan& plan) {
  const Job& job = *plan.job;
  return {.record = "job:ceems_cpu_memory_usage:avg_ratio",
          .expression = fmt::format("100 * avg by (job) (1 - {} / {})",
                                    selector("ceems_meminfo_MemAvailable_bytes", job),
                                    selector("ceems_meminfo_MemTotal_bytes", job))};
}

struct Traffic {
  std::string_view series;  ///< without "ceems_ebpf_" and "_total"
  std::string_view kind;    ///< "io" or "net"
  std::string_view labels;  ///< by which a job's traffic is summed, besides job
};

constexpr std::array<Traffic, 10> kTraffic{{
    {"read_bytes", "io", "mountpoint"},
    {"read_requests", "io", "mountpoint"},
    {"read_errors", "io", "mountpoint"},
    {"write_bytes", "io", "mountpoint"},
    {"write_requests", "io", "mountpoint"},
    {"write_errors", "io", "mountpoint"},
    {"ingress_bytes", "net", "family, proto"},
    {"ingress_packets", "net", "family, proto"},
    {"egress_bytes", "net", "family, proto"},
    {"egress_packets", "net", "family, proto"},
}};

/// Two groups for files or network: of units and of the job. None without such series.
void add_traffic(const HostPlan& plan,
                 const Common& common,
                 std::string_view kind,
                 std::vector<Group>& groups) {
  const Job& job = *plan.job;
  Group units{.name = fmt::format("compute-unit-{}-rules-{}", kind, job.name),
              .interval = common.interval,
              .rules = {}};
  Group sums{.name = fmt::format("host-agg-{}-rules-{}", kind, job.name),
             .interval = rate_window(job),
             .rules = {}};
  for (const Traffic& traffic : kTraffic) {
    const std::string metric = fmt::format("ceems_ebpf_{}_total", traffic.series);
    if (traffic.kind != kind || !job.has(metric)) {
      continue;
    }
    const std::string rate = irate(selector(metric, job), rate_window(job));
    units.rules.push_back({.record = fmt::format("uuid:ceems_{}_{}:irate", kind, traffic.series),
                           .expression = rate});
    sums.rules.push_back(
        {.record = fmt::format("job:ceems_{}_{}:sum_irate", kind, traffic.series),
         .expression = fmt::format("sum by (job, {}) ({})", traffic.labels, rate)});
  }
  if (!units.rules.empty()) {
    groups.push_back(std::move(units));
    groups.push_back(std::move(sums));
  }
}

void append(std::vector<Rule>& rules, std::vector<Rule> more) {
  rules.insert(rules.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<Group> host_groups(const HostPlan& plan, const Common& common) {
  const Job& job = *plan.job;
  Group units{.name = "compute-unit-rules-" + job.name,
              .interval = common.interval,
              .rules = {cpu_usage(plan), memory_usage(plan)}};
  append(units.rules, unit_power_rules(plan, common.pue));
  append(units.rules,
         unit_emissions("uuid:ceems_host_emissions_g_s:pue",
                        selector("uuid:ceems_host_power_watts:pue", job), common.emissions));
  Group sums{.name = "host-agg-rules-" + job.name,
             .interval = rate_window(job),
             .rules = {job_cpu_usage(plan),
                       job_memory_usage(plan),
                       {.record = "job:ceems_host_power_watts:pue",
                        .expression = job_power(plan, common.pue)}}};
  append(sums.rules, job_emissions("job:ceems_host_emissions_g_s:pue",
                                   selector("job:ceems_host_power_watts:pue", job), job.name,
                                   common.emissions));
  std::vector<Group> groups{std::move(units), std::move(sums)};
  add_traffic(plan, common, "io", groups);
  add_traffic(plan, common, "net", groups);
  return groups;
}

}  // namespace ceems::tool::rules
