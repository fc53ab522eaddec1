#include "tool/rules/plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"

namespace ceems::tool::rules {
namespace {

constexpr std::string_view kFlag = "ceems_compute_unit_gpu_index_flag";
constexpr std::string_view kCounter = "ceems_compute_unit_energy_joules_total";
constexpr std::string_view kNodeCounter = "ceems_node_energy_joules_total";

bool has_redfish(const Job& job) {
  return job.has("ceems_redfish_current_watts") || job.has("ceems_redfish_power_current_watts");
}
bool has_ipmi(const Job& job) {
  return job.has("ceems_ipmi_dcmi_current_watts") || job.has("ceems_ipmi_dcmi_power_current_watts");
}

/// The value that a list of VALUE and JOB=VALUE gives for a job; empty if none.
std::string chosen_for(const Job& job,
                       const std::vector<std::string>& given,
                       const std::vector<std::string>& known) {
  std::string chosen;
  for (const std::string& text : given) {
    if (text.starts_with(job.name + "=")) {
      return text.substr(job.name.size() + 1);
    }
    if (std::ranges::find(known, text) != known.end()) {
      chosen = text;
    }
  }
  return chosen;
}

/// Selects one of the values of a label: by flag, because there is only one, or by asking.
Result<std::string> select(const Job& job,
                           std::string_view what,
                           const std::vector<std::string>& known,
                           const std::vector<std::string>& given,
                           const Ask& ask) {
  std::string chosen = chosen_for(job, given, known);
  if (!chosen.empty()) {
    if (std::ranges::find(known, chosen) == known.end()) {
      return fail(ErrorCode::kInvalidArgument, "job '{}' has no {} '{}', but {}", job.name, what,
                  printable(chosen), fmt::join(known, ", "));
    }
    return chosen;
  }
  if (known.size() == 1) {
    return known.front();
  }
  CEEMS_TRY_IN(fmt::format("job '{}'", job.name), answer,
               ask(fmt::format("job '{}' has several values of {}; which one is the power of the "
                               "whole node?",
                               job.name, what),
                   known));
  return known.at(answer);
}

/// The chip of hwmon that measures whole nodes, if that is clear without asking: the one that was
/// chosen, or the power meter of ACPI.
std::optional<std::string> node_chip(const Job& job, const Choices& choices) {
  std::vector<std::string> chips;
  std::vector<std::string> meters;
  for (const auto& [chip, name] : job.chips) {
    chips.push_back(chip);
    if (name == "power_meter") {
      meters.push_back(chip);
    }
  }
  if (std::string chosen = chosen_for(job, choices.chips, chips); !chosen.empty()) {
    return chosen;
  }
  return meters.size() == 1 ? std::optional(meters.front()) : std::nullopt;
}

/// Adds the plan for a job, a remark why there is none, or an error.
void plan_host(const Job& job, const Choices& choices, const Ask& ask, Plan& plan) {
  HostPlan host{.job = &job, .chassis = {}, .chip = {}, .gpus = {}};
  std::vector<std::string> chips;
  chips.reserve(job.chips.size());
  for (const auto& [chip, name] : job.chips) {
    chips.push_back(chip);
  }
  const auto chip = node_chip(job, choices);
  const bool rapl = job.has("ceems_rapl_package_joules_total");
  Result<std::string> selected;
  if (job.has("ceems_cray_pm_counters_power_watts")) {
    host.family = Family::kCray;
  } else if (has_redfish(job)) {
    host.family = Family::kRedfish;
    if (job.chassis.empty()) {
      selected = fail(ErrorCode::kNoData, "no chassis found for ceems_redfish_current_watts");
    } else {
      selected = select(job, "chassis", job.chassis, choices.chassis, ask);
    }
    host.chassis = selected.value_or("");
  } else if (has_ipmi(job)) {
    host.family = Family::kIpmi;
  } else if (chip || (!chips.empty() && !rapl)) {
    host.family = Family::kHwmon;
    selected = chip && std::ranges::find(chips, *chip) != chips.end()
                   ? Result<std::string>(*chip)
                   : select(job, "chip", chips, choices.chips, ask);
    host.chip = selected.value_or("");
  } else if (rapl) {
    host.family = Family::kRapl;
    if (!chips.empty()) {
      plan.remarks.push_back(fmt::format(
          "job '{}': RAPL is used; if a chip of hwmon measures the whole node, name it with "
          "--hwmon.chip: {}",
          job.name, fmt::join(chips, ", ")));
    }
  } else {
    if (job.has("ceems_compute_units")) {
      plan.remarks.push_back(fmt::format(
          "job '{}' is skipped: its exporters export no power (Cray PM counters, Redfish, IPMI, "
          "hwmon or RAPL)",
          job.name));
    }
    return;
  }
  if (!selected) {
    plan.errors.push_back(selected.error().message);
    return;
  }
  plan.hosts.push_back(std::move(host));
}

std::optional<GpuKind> gpu_kind(const Job& job) {
  if (job.has("DCGM_FI_DEV_POWER_USAGE_INSTANT") || job.has("DCGM_FI_DEV_POWER_USAGE")) {
    return GpuKind::kNvidia;
  }
  if (job.has("gpu_power_usage")) {
    return GpuKind::kAmdDevice;
  }
  if (job.has("amd_gpu_power")) {
    return GpuKind::kAmdSmi;
  }
  return std::nullopt;
}

/// The jobs that report the GPUs of the hosts, each for hosts of which a better one knows nothing.
/// Device metrics of AMD are better than AMD SMI, and that is better than DCGM; of the same kind
/// the last one is best.
std::vector<const Job*> gpu_jobs(const Site& site, const Job& host_job) {
  std::vector<const Job*> found;
  std::set<std::string, std::less<>> covered;
  for (const GpuKind kind : {GpuKind::kAmdDevice, GpuKind::kAmdSmi, GpuKind::kNvidia}) {
    for (auto job = site.jobs.rbegin(); job != site.jobs.rend(); ++job) {
      if (gpu_kind(*job) != kind) {
        continue;
      }
      bool news = false;
      for (const std::string& host : job->hosts) {
        news = (host_job.hosts.contains(host) && covered.insert(host).second) || news;
      }
      if (news) {
        found.push_back(&*job);
      }
    }
  }
  return found;
}

void pair_gpus(const Site& site, HostPlan& host, Plan& plan) {
  if (!host.job->has(kFlag)) {
    return;
  }
  for (const Job* job : gpu_jobs(site, *host.job)) {
    auto known = std::ranges::find(plan.gpus, job, &GpuPlan::job);
    if (known == plan.gpus.end()) {
      plan.gpus.push_back(
          {.job = job, .kind = gpu_kind(*job).value_or(GpuKind::kNvidia), .cpu_jobs = {}});
      known = plan.gpus.end() - 1;
    }
    known->cpu_jobs.push_back(host.job->name);
    host.gpus.push_back(&*known);
  }
}

/// Nodes without units have only the counter of the node.
bool counts_energy(const Job& job) {
  return job.has(kCounter) || job.has(kNodeCounter);
}

std::string why_skipped(const Job& job) {
  const auto counting = job.counting_hosts.size();
  if (counting == 0 || counting == job.hosts.size()) {
    return fmt::format(
        "job '{}' is skipped: its exporters count the energy of units themselves ({}), which "
        "needs no rules; for dashboards that read records there is ceems-compat.rules.yml; "
        "--no-skip-energy-counters writes rules anyway",
        job.name, kCounter);
  }
  return fmt::format(
      "job '{}' is skipped: the exporters on {} of its {} hosts count the energy of units "
      "themselves ({}). Keep the rules that it has until all of them do and then load "
      "ceems-compat.rules.yml instead, or scrape the others as a job of their own; "
      "--no-skip-energy-counters writes rules for all of them, beside which "
      "ceems-compat.rules.yml must not be loaded",
      job.name, counting, job.hosts.size(), kCounter);
}

/// Marks jobs of GPU exporters on hosts whose exporters count the energy of GPUs as well.
void mark_counted(const std::vector<const Job*>& skipped, Plan& plan) {
  for (GpuPlan& gpus : plan.gpus) {
    gpus.counted_elsewhere = std::ranges::any_of(skipped, [&](const Job* job) {
      return std::ranges::any_of(job->counting_hosts, [&](const std::string& host) {
        return gpus.job->hosts.contains(host);
      });
    });
  }
}

}  // namespace

Plan make_plan(const Site& site, const Choices& choices, const Ask& ask) {
  Plan plan;
  std::vector<const Job*> skipped;
  for (const Job& job : site.jobs) {
    if (choices.skip_counted && counts_energy(job)) {
      plan.remarks.push_back(why_skipped(job));
      skipped.push_back(&job);
      continue;
    }
    plan_host(job, choices, ask, plan);
  }
  for (HostPlan& host : plan.hosts) {
    pair_gpus(site, host, plan);
  }
  mark_counted(skipped, plan);
  return plan;
}

bool has_later_names(const Site& site) {
  return std::ranges::any_of(site.jobs, [](const Job& job) {
    return job.has("ceems_ipmi_dcmi_power_current_watts") ||
           job.has("ceems_redfish_power_current_watts");
  });
}

std::string_view to_string(Family family) {
  switch (family) {
    case Family::kCray:
      return "Cray PM counters";
    case Family::kRedfish:
      return "Redfish";
    case Family::kIpmi:
      return "IPMI";
    case Family::kHwmon:
      return "hwmon";
    case Family::kRapl:
      return "RAPL";
  }
  return "unknown";
}

}  // namespace ceems::tool::rules
