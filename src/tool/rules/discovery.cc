#include "tool/rules/discovery.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "tool/rules/groups.h"
#include "tool/rules/promql.h"

namespace ceems::tool::rules {
namespace {

/// A few series for each node or GPU, which are read.
constexpr std::array<std::string_view, 13> kNodeSeries{
    "ceems_compute_units",
    "ceems_rapl_package_joules_total",
    "ceems_rapl_dram_joules_total",
    "ceems_ipmi_dcmi_current_watts",
    "ceems_ipmi_dcmi_power_current_watts",
    "ceems_redfish_current_watts",
    "ceems_redfish_power_current_watts",
    "ceems_cray_pm_counters_power_watts",
    "ceems_hwmon_power_current_watts",
    "DCGM_FI_DEV_POWER_USAGE_INSTANT",
    "DCGM_FI_DEV_POWER_USAGE",
    "amd_gpu_power",
    "gpu_power_usage",
};

constexpr std::string_view kNodeEnergy = "ceems_node_energy_joules_total";

/// Many series, of which only the jobs are asked for.
std::vector<std::string> unit_series() {
  std::vector<std::string> names{"ceems_compute_unit_gpu_index_flag",
                                 "ceems_compute_unit_energy_joules_total"};
  for (const char* name :
       {"read_bytes", "read_requests", "read_errors", "write_bytes", "write_requests",
        "write_errors", "ingress_bytes", "ingress_packets", "egress_bytes", "egress_packets"}) {
    names.push_back(fmt::format("ceems_ebpf_{}_total", name));
  }
  names.insert(names.end(), profiling_metrics().begin(), profiling_metrics().end());
  return names;
}

using Jobs = std::map<std::string, Job, std::less<>>;

Job& job_named(Jobs& jobs, std::string_view name) {
  Job& job = jobs[std::string(name)];
  job.name = name;
  return job;
}

Result<> read_node_series(tsdb::Client& client, TimeRange range, Jobs& jobs) {
  CEEMS_TRY_IN("error fetching series", series,
               client.series({fmt::format("{{__name__=~\"{}\"}}", fmt::join(kNodeSeries, "|")),
                              fmt::format("{}{{domain=\"node\"}}", kNodeEnergy)},
                             range.start_ms, range.end_ms));
  for (const tsdb::Labels& labels : series) {
    Job& job = job_named(jobs, labels.get("job"));
    const std::string_view name = labels.get("__name__");
    job.series.emplace(name);
    job.hosts.insert(host_of(labels.get("instance")));
    if (name == kNodeEnergy) {
      job.counting_hosts.insert(host_of(labels.get("instance")));
    } else if (name.starts_with("ceems_redfish_")) {
      job.chassis.emplace_back(labels.get("chassis"));
    } else if (name == "ceems_hwmon_power_current_watts") {
      job.chips.emplace(labels.get("chip"), labels.get("chip_name"));
    }
  }
  for (auto& [name, job] : jobs) {
    std::ranges::sort(job.chassis);
    const auto [first, last] = std::ranges::unique(job.chassis);
    job.chassis.erase(first, last);
  }
  return {};
}

Result<> read_unit_series(tsdb::Client& client, TimeRange range, Jobs& jobs) {
  for (const std::string& name : unit_series()) {
    CEEMS_TRY_IN("error fetching series label values", names,
                 client.label_values("job", {name}, range.start_ms, range.end_ms));
    for (const std::string& job : names) {
      job_named(jobs, job).series.insert(name);
    }
  }
  for (auto& [name, job] : jobs) {
    if (!job.has("gpu_power_usage")) {
      continue;
    }
    CEEMS_TRY_IN(
        "error fetching series label values", metrics,
        client.label_values(
            "__name__", {fmt::format("{{__name__=~\"gpu_prof_.+\",job=\"{}\"}}", escaped(name))},
            range.start_ms, range.end_ms));
    job.series.insert(metrics.begin(), metrics.end());
  }
  return {};
}

/// Scrape intervals by job.
void read_scrape_intervals(tsdb::Client& client, Jobs& jobs, std::vector<std::string>& remarks) {
  const auto targets = client.targets();
  if (!targets) {
    remarks.push_back(fmt::format("error fetching scrape intervals: {}; the global one is used",
                                  targets.error().message));
    return;
  }
  for (const tsdb::Target& target : *targets) {
    const auto job = jobs.find(target.discovered.get("job"));
    const std::string_view text = target.discovered.get("__scrape_interval__");
    if (job == jobs.end() || text.empty()) {
      continue;
    }
    const auto interval = tsdb::parse_duration(text);
    if (interval && interval->count() > 0) {
      job->second.scrape_interval = *interval;
    } else {
      remarks.push_back(fmt::format("cannot parse scrape interval '{}' of job '{}'",
                                    printable(text, 40), job->first));
    }
  }
}

}  // namespace

std::string host_of(std::string_view instance) {
  const std::size_t colon = instance.rfind(':');
  const bool port = colon != std::string_view::npos && colon + 1 < instance.size() &&
                    instance.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return std::string(port ? instance.substr(0, colon) : instance);
}

Result<Site> discover(tsdb::Client& client,
                      TimeRange range,
                      const std::string& country_code,
                      std::vector<std::string>& remarks) {
  Jobs jobs;
  CEEMS_TRY(read_node_series(client, range, jobs));
  CEEMS_TRY(read_unit_series(client, range, jobs));
  read_scrape_intervals(client, jobs, remarks);
  const tsdb::Settings settings = client.settings();
  Site site{.jobs = {}, .evaluation_interval = settings.evaluation_interval, .providers = {}};
  for (auto& [name, job] : jobs) {
    if (job.scrape_interval.count() == 0) {
      job.scrape_interval = settings.scrape_interval;
    }
    site.jobs.push_back(std::move(job));
  }
  CEEMS_TRY_IN("error fetching series label values", providers,
               client.label_values("provider",
                                   {fmt::format("ceems_emissions_gCo2_kWh{{country_code=\"{}\"}}",
                                                escaped(country_code))},
                                   range.start_ms, range.end_ms));
  site.providers = std::move(providers);
  return site;
}

}  // namespace ceems::tool::rules
