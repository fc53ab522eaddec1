#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "api/report/facts.h"
#include "report/report.h"

namespace ceems::api {

// What both the numbers of a report and the facts of rules are computed from. Pure functions.

/// Whether this is the domain of GPUs, of all or of one kind.
inline bool is_gpu(std::string_view domain) {
  return domain.starts_with("gpu");
}
inline report::Number scaled(const std::optional<double>& number, double by) {
  return number ? report::Number(*number * by) : std::nullopt;
}
/// Adds what is known.
inline void add_to(report::Number& sum, const report::Number& part) {
  if (part) {
    sum = sum.value_or(0) + *part;
  }
}

/// Seconds.
inline double elapsed_of(const UnitRun& run) {
  return std::max(static_cast<double>(run.ended_ms - run.started_ms) / 1000, 0.0);
}
inline double elapsed_of(const store::FamilyRun& run) {
  return std::max(static_cast<double>(run.ended_at_ts - run.key.started_at_ts) / 1000, 0.0);
}

/// Energy while the run was reserved and idle, in kWh; of its GPUs only, or of all. Nothing if no
/// node counted it.
report::Number idle_kwh_of(const std::vector<NodeMeasurements>& nodes, bool of_gpus);

/// The part of it of GPUs that were not used. Nothing if a node counted the one and not the other.
report::Number not_used_gpu_kwh_of(const std::vector<NodeMeasurements>& nodes);

/// Values of the family, this run first.
struct FamilyValues {
  std::vector<double> runtime, memory, cpu, gpu, kwh;
};
FamilyValues family_values(const Evidence& evidence, const report::Report& report);

}  // namespace ceems::api
