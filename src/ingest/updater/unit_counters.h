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

/// The usage of one unit in one window, according to the exporter's own counters.
struct UnitUse {
  std::optional<double> cpu_seconds;
  std::optional<double> cpus;               ///< CPUs of the allocation, summed over hosts
  std::optional<double> memory_ratio;       ///< mean of memory in use / memory total
  std::optional<double> cpu_energy_joules;  ///< everything but GPUs
  std::optional<double> gpu_energy_joules;
  std::optional<double> peak_memory_bytes;   ///< of the host with the most
  std::optional<double> idle_energy_joules;  ///< of reserved resources, over all domains
  /// The part of it that was not used; nothing if a host counts the one without the other.
  std::optional<double> not_used_joules;
  std::optional<double> gpu_busy_seconds;  ///< summed over GPUs and instances
  std::size_t gpus_seen = 0;               ///< GPUs and instances that have these
  /// Joules times the emission factor at their time, for each factor; empty without energy.
  std::vector<double> cpu_emissions, gpu_emissions;
};

struct CounterRequest {
  model::Window window;
  std::vector<EmissionFactor> factors = {};
  bool accept_incomplete = false;
};

/// Reads ceems_compute_unit_{cpus,cpu_user_seconds_total,cpu_system_seconds_total,
/// memory_used_bytes,memory_total_bytes,energy_joules_total,idle_energy_joules_total,
/// unused_idle_energy_joules_total,gpu_busy_seconds_total} as raw samples, and the maximum of
/// memory_peak_bytes.
///
/// Each sample counts in the window that contains its time (see counter.h), so totals do not depend
/// on how time is divided into windows. If a unit ended in the window, its samples count up to
/// `settle` after the window. By then the last scrape has seen its final values, and the next
/// window does not include the unit. The window must end at least `settle` ago.
///
/// Energy is the series domain="node" minus the domains that begin with "gpu". On a host without
/// that series it is the sum of all other domains. Units with the same uuid (a requeued job, a
/// restarted service) share the samples, divided at the times at which they started.
///
/// Memory is the area under the gauge (gauge_area()) divided by total and time. So its
/// time-weighted mean does not depend on the windows either, as long as no pause between samples
/// exceeds 5 min or three scrape intervals, whichever is longer.
///
/// Returns one entry per unit, in order. If any query fails, its error is returned. Reading units
/// in batches and long windows in parts bounds the number of samples in memory.
Result<std::vector<UnitUse>> read_unit_counters(tsdb::Client& client,
                                                const tsdb::Settings& settings,
                                                const CounterRequest& request,
                                                const std::vector<model::Unit>& units,
                                                std::stop_token stop);

/// Returns the request for read_emission_factors() that covers the window.
FactorRequest factor_request(const tsdb::Settings& settings, model::Window window);

/// How long after the end of a window its last samples become visible: a scrape interval, plus 10 s
/// for the scrape itself and for ingestion.
std::chrono::milliseconds settle_time(const tsdb::Settings& settings);

}  // namespace ceems::ingest
