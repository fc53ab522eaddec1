#include "tool/rules/families.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tool/rules/host_rules.h"
#include "tool/rules/promql.h"

namespace ceems::tool::rules {
namespace {

constexpr std::string_view kPower = "uuid:ceems_host_power_watts:pue";

std::string by_instance(const std::string& expression) {
  return fmt::format("sum by (instance) ({})", expression);
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

}  // namespace

std::string unit_cpu(const Job& job) {
  return fmt::format(
      "({} + {})",
      irate(selector("ceems_compute_unit_cpu_user_seconds_total", job), rate_window(job)),
      irate(selector("ceems_compute_unit_cpu_system_seconds_total", job), rate_window(job)));
}

std::string host_metric(const HostPlan& plan) {
  return meter_metrics(plan).front();
}

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

std::string host_minus_gpu_watts(const HostPlan& plan) {
  std::vector<std::string> gpus;
  gpus.reserve(plan.gpus.size());
  for (const GpuPlan* one : plan.gpus) {
    gpus.push_back(gpu_watts_by_host(*one));
  }
  return fmt::format("{} - on (instancehost) group_left () ({})", with_host(host_watts(plan)),
                     fmt::join(gpus, " or "));
}

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

}  // namespace ceems::tool::rules
