#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tool/rules/groups.h"
#include "tool/rules/promql.h"

// Power is split among units by their shares of the node's CPU time and memory, and equally among
// all units where nothing better is known.

namespace ceems::tool::rules {
namespace {

constexpr std::string_view kPower = "uuid:ceems_host_power_watts:pue";

std::string by_instance(const std::string& expression) {
  return fmt::format("sum by (instance) ({})", expression);
}

/// CPU seconds per second of each unit, with the labels of the unit.
std::string unit_cpu(const Job& job) {
  return fmt::format(
      "({} + {})",
      irate(selector("ceems_compute_unit_cpu_user_seconds_total", job), rate_window(job)),
      irate(selector("ceems_compute_unit_cpu_system_seconds_total", job), rate_window(job)));
}

/// CPU seconds per second of the whole node, without idle time.
std::string node_cpu(const Job& job) {
  return by_instance(irate(selector("ceems_cpu_seconds_total", job, R"(mode!~"idle|iowait|steal")"),
                           rate_window(job)));
}

std::string unit_memory(const Job& job) {
  return selector("ceems_compute_unit_memory_used_bytes", job);
}

std::string node_memory(const Job& job) {
  return by_instance(fmt::format("{} - {}", selector("ceems_meminfo_MemTotal_bytes", job),
                                 selector("ceems_meminfo_MemAvailable_bytes", job)));
}

/// `watts`, an expression by instance, times the share of each unit.
std::string by_cpu(const Job& job, const std::string& watts) {
  return fmt::format("{}\n  / on (instance) group_left () {}\n  * on (instance) group_left () {}",
                     unit_cpu(job), node_cpu(job), watts);
}

std::string by_memory(const Job& job, const std::string& watts) {
  return fmt::format("{}\n  / on (instance) group_left () {}\n  * on (instance) group_left () {}",
                     unit_memory(job), node_memory(job), watts);
}

std::string equally(const Job& job, const std::string& watts) {
  return fmt::format(
      "({} * 0 + 1)\n  / on (instance) group_left () {}\n  * on (instance) group_left () {}",
      unit_memory(job), by_instance(selector("ceems_compute_units", job)), watts);
}

std::string sum_of(const std::vector<std::string>& terms) {
  std::string sum;
  for (const std::string& term : terms) {
    sum += (sum.empty() ? "" : "\n+\n") + term;
  }
  return sum;
}

/// Watts of the packages, or of DRAM, by the labels. A node that does not measure DRAM has 0.
std::string rapl_package(const Job& job, std::string_view labels) {
  return fmt::format("sum by ({}) ({})", labels,
                     irate(selector("ceems_rapl_package_joules_total", job), rate_window(job)));
}

std::string rapl_dram(const Job& job, std::string_view labels) {
  return fmt::format("(sum by ({}) ({}) or {} * 0)", labels,
                     irate(selector("ceems_rapl_dram_joules_total", job), rate_window(job)),
                     rapl_package(job, labels));
}

std::vector<Rule> rapl_rules(const HostPlan& plan, double pue) {
  const Job& job = *plan.job;
  std::vector<Rule> rules;
  for (const char* domain : {"package", "dram"}) {
    const std::string metric = fmt::format("ceems_rapl_{}_joules_total", domain);
    rules.push_back({.record = fmt::format("instance:{}:pue", metric),
                     .expression = scaled(pue, selector(metric, job))});
  }
  // From the counters themselves: the records above may be too far apart for a rate.
  rules.push_back(
      {.record = std::string(kPower),
       .expression =
           sum_of({by_cpu(job, fmt::format("({})", scaled(pue, rapl_package(job, "instance")))),
                   by_memory(job, fmt::format("({})", scaled(pue, rapl_dram(job, "instance"))))})});
  return rules;
}

std::vector<Rule> cray_rules(const HostPlan& plan, double pue) {
  const Job& job = *plan.job;
  constexpr std::string_view kRecord = "instance:ceems_cray_pm_counters_power_watts:pue";
  const auto domain = [&](std::string_view matcher) {
    return by_instance(selector(kRecord, job, matcher));
  };
  const std::string node = domain(R"(domain="node")");
  const auto or_nothing = [&](std::string_view matcher) {
    return fmt::format("({} or {} * 0)", domain(matcher), node);
  };
  return {{.record = std::string(kRecord),
           .expression = scaled(pue, selector("ceems_cray_pm_counters_power_watts", job))},
          {.record = std::string(kPower),
           .expression = sum_of(
               {by_cpu(job, or_nothing(R"(domain="cpu")")),
                by_memory(job, or_nothing(R"(domain="memory")")),
                equally(job, fmt::format("({} - {})", node, or_nothing(R"(domain!="node")")))})}};
}

/// The series of the meter in the order of preference. Releases of CEEMS name them differently.
std::vector<std::string> meter_metrics(const HostPlan& plan) {
  constexpr std::array<std::pair<Family, std::string_view>, 5> kMetrics{{
      {Family::kRedfish, "ceems_redfish_power_current_watts"},
      {Family::kRedfish, "ceems_redfish_current_watts"},
      {Family::kIpmi, "ceems_ipmi_dcmi_power_current_watts"},
      {Family::kIpmi, "ceems_ipmi_dcmi_current_watts"},
      {Family::kHwmon, "ceems_hwmon_power_current_watts"},
  }};
  std::vector<std::string> found;
  for (const auto& [family, metric] : kMetrics) {
    if (family == plan.family && plan.job->has(metric)) {
      found.emplace_back(metric);
    }
  }
  return found;
}

/// The name of the series that measures the power of hosts, and of the record of it: the newest
/// name that the job exports.
std::string host_metric(const HostPlan& plan) {
  return meter_metrics(plan).front();
}

/// The power of hosts in watts, one series for each instance, as the meter reports it. For kRapl
/// and kCray this is not used.
std::string host_watts(const HostPlan& plan) {
  std::string more;
  if (plan.family == Family::kRedfish) {
    more = fmt::format("chassis=\"{}\"", escaped(plan.chassis));
  } else if (plan.family == Family::kHwmon) {
    more = fmt::format("chip=\"{}\"", escaped(plan.chip));
  }
  std::string watts;
  const auto metrics = meter_metrics(plan);
  for (const std::string& metric : metrics) {
    watts += (watts.empty() ? "" : " or ") + selector(metric, *plan.job, more);
  }
  if (plan.family == Family::kHwmon) {  // of all sensors of the chip
    return fmt::format("sum by (instance, hostname, job) ({})", watts);
  }
  return metrics.size() > 1 ? "(" + watts + ")" : watts;
}

/// The same minus the power of the GPUs on the host, by instance and instancehost. Hosts that had
/// no GPU in the last hour keep their whole power.
std::string host_watts_without_gpus(const HostPlan& plan) {
  std::vector<std::string> recent;
  recent.reserve(plan.gpus.size());
  for (const GpuPlan* one : plan.gpus) {
    recent.push_back(with_host(fmt::format("last_over_time({}[1h])",
                                           selector(gpu_power_metrics(*one).front(), *one->job))));
  }
  return fmt::format("(\n  {}\n  or\n  ({} unless on (instancehost) ({}))\n)",
                     host_minus_gpu_watts(plan), with_host(host_watts(plan)),
                     fmt::join(recent, " or "));
}

/// The power of the hosts, without that of their GPUs if the meter includes it.
std::string measured(const HostPlan& plan, double pue) {
  if (!plan.gpus_included) {
    return scaled(pue, host_watts(plan));
  }
  return fmt::format("({} > 0)", scaled(pue, host_watts_without_gpus(plan)));
}

std::vector<Rule> meter_rules(const HostPlan& plan, double pue) {
  const Job& job = *plan.job;
  const std::string record = fmt::format("instance:{}:pue", host_metric(plan));
  const std::string watts = by_instance(selector(record, job));
  std::vector<Rule> rules{{.record = record, .expression = measured(plan, pue)}};
  std::vector<std::string> terms;
  if (job.has("ceems_rapl_package_joules_total") && job.has("ceems_rapl_dram_joules_total")) {
    // Nodes without RAPL, among others with it, split by CPU time alone.
    const std::string package = rapl_package(job, "instance");
    const std::string dram = rapl_dram(job, "instance");
    const std::string both = fmt::format("({} + {} > 0)", package, dram);
    terms = {
        "0.9 * " + by_cpu(job, fmt::format("({0} * {1} / {2} or {0})", watts, package, both)),
        "0.9 * " + by_memory(job, fmt::format("({0} * {1} / {2} or {0} * 0)", watts, dram, both))};
  } else {
    terms = {"0.9 * " + by_cpu(job, watts)};
  }
  terms.push_back("0.1 * " + equally(job, watts));
  rules.push_back({.record = std::string(kPower), .expression = sum_of(terms)});
  return rules;
}

/// The records of the power of instances, and of units from them.
std::vector<Rule> unit_power_rules(const HostPlan& plan, double pue) {
  switch (plan.family) {
    case Family::kCray:
      return cray_rules(plan, pue);
    case Family::kRapl:
      return rapl_rules(plan, pue);
    case Family::kRedfish:
    case Family::kIpmi:
    case Family::kHwmon:
      return meter_rules(plan, pue);
  }
  return {};
}

/// The power of all hosts of the job, by job.
std::string job_power(const HostPlan& plan, double pue) {
  const Job& job = *plan.job;
  if (plan.family == Family::kRapl) {
    return scaled(pue, fmt::format("sum by (job) ({} + {})", rapl_package(job, "job, instance"),
                                   rapl_dram(job, "job, instance")));
  }
  if (plan.family == Family::kCray) {
    const auto domain = [&](std::string_view matcher) {
      return fmt::format("sum by (job, instance) ({})",
                         selector("ceems_cray_pm_counters_power_watts", job, matcher));
    };
    const std::string node = domain(R"(domain="node")");
    return scaled(pue, fmt::format("sum by (job) ({0} - ({1} or {0} * 0))", node,
                                   domain(R"(domain=~"accel.*")")));
  }
  return fmt::format("sum by (job) ({})", measured(plan, pue));
}

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

std::string host_minus_gpu_watts(const HostPlan& plan) {
  std::vector<std::string> gpus;
  gpus.reserve(plan.gpus.size());
  for (const GpuPlan* one : plan.gpus) {
    gpus.push_back(gpu_watts_by_host(*one));
  }
  return fmt::format("{} - on (instancehost) group_left () ({})", with_host(host_watts(plan)),
                     fmt::join(gpus, " or "));
}

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
