#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/updater/emission_factors.h"
#include "model/unit.h"
#include "tsdb/client.h"

namespace ceems::ingest {

/// What the exporter's own counters say about one unit in one window.
struct UnitUse {
  std::optional<double> cpu_seconds;
  std::optional<double> cpus;               ///< CPUs of the allocation, summed over hosts
  std::optional<double> memory_ratio;       ///< mean of memory in use / memory total
  std::optional<double> cpu_energy_joules;  ///< everything but GPUs
  std::optional<double> gpu_energy_joules;
  /// Joules times the factor of their time, for each factor; empty without energy.
  std::vector<double> cpu_emissions, gpu_emissions;
};

struct CounterRequest {
  model::Window window;
  std::vector<EmissionFactor> factors = {};
  bool accept_incomplete = false;
};

/// Reads ceems_compute_unit_{cpus,cpu_user_seconds_total,cpu_system_seconds_total,
/// memory_used_bytes,memory_total_bytes,energy_joules_total} as raw samples.
///
/// Each sample counts in the window that holds its time (see counter.h), so totals do not depend on
/// the windows. Samples of a unit that ended in the window count up to `settle` after the window,
/// which is when the last scrape has seen its final values; the unit is not expected in the next
/// window. The window must lie at least `settle` in the past.
///
/// Energy is the series domain="node" less domains that begin with "gpu"; on a host without that
/// series the sum of all other domains. Units with the same uuid (a job requeued, a service
/// restarted) share the samples by the times at which they started.
///
/// Memory is the area under the gauge (gauge_area()) over total and time, so its mean weighted with
/// the time does not depend on the windows either, as far as silences stay below 5 min.
///
/// Gives one entry per unit, in order. Any answer missing: the error. Samples kept at a time are
/// bounded by reading units in batches and long windows in parts.
Result<std::vector<UnitUse>> read_unit_counters(tsdb::Client& client,
                                                const tsdb::Settings& settings,
                                                const CounterRequest& request,
                                                const std::vector<model::Unit>& units,
                                                std::stop_token stop);

/// What read_emission_factors() must know for the window.
FactorRequest factor_request(const tsdb::Settings& settings, model::Window window);

/// How long after the end of a window its last samples can be queried: a scrape interval, and 10 s
/// for the scrape itself and for ingestion.
std::chrono::milliseconds settle_time(const tsdb::Settings& settings);

}  // namespace ceems::ingest
