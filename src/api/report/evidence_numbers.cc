#include "api/report/evidence_numbers.h"

#include <algorithm>

#include "base/time/durations.h"

namespace ceems::api {

using report::Number;

Number idle_kwh_of(const std::vector<NodeMeasurements>& nodes, bool of_gpus) {
  Number sum;
  for (const NodeMeasurements& node : nodes) {
    const bool has_whole = node.idle_joules.contains("node");
    for (const auto& [domain, joules] : node.idle_joules) {
      if (of_gpus ? is_gpu(domain) : (has_whole ? domain == "node" : true)) {
        add_to(sum, joules / kJoulesPerKwh);
      }
    }
  }
  return sum;
}

Number not_used_gpu_kwh_of(const std::vector<NodeMeasurements>& nodes) {
  Number sum;
  for (const NodeMeasurements& node : nodes) {
    for (const auto& [domain, joules] : node.idle_joules) {
      if (!is_gpu(domain)) {
        continue;
      }
      const auto found = node.not_used_joules.find(domain);
      if (found == node.not_used_joules.end()) {
        return std::nullopt;
      }
      add_to(sum, std::min(found->second, joules) / kJoulesPerKwh);
    }
  }
  return sum;
}

FamilyValues family_values(const Evidence& evidence, const report::Report& report) {
  FamilyValues all;
  const auto add = [](std::vector<double>& list, const Number& value) {
    if (value) {
      list.push_back(*value);
    }
  };
  add(all.runtime, report.job.elapsed);
  add(all.memory, report.use.mem_peak_node);
  add(all.cpu, report.use.cpu);
  add(all.gpu, report.use.gpu_busy);
  add(all.kwh, report.energy.kwh);
  for (const store::FamilyRun& run : evidence.earlier) {
    const double elapsed = elapsed_of(run);
    all.runtime.push_back(elapsed);
    add(all.memory, run.numbers.mem_peak);
    add(all.cpu, run.cpu_use);
    if (run.numbers.gpu_busy_seconds && run.numbers.gpus > 0 && elapsed > 0) {
      all.gpu.push_back(*run.numbers.gpu_busy_seconds /
                        (static_cast<double>(run.numbers.gpus) * elapsed));
    } else {
      add(all.gpu, run.gpu_use);
    }
    add(all.kwh, run.kwh);
  }
  return all;
}

}  // namespace ceems::api
