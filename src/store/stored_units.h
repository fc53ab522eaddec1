#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/unit.h"
#include "store/session.h"

namespace ceems::store {

/// The columns of units, usage and daily_usage that hold maps, in the order of MapTexts.
inline constexpr std::string_view kMapNames =
    "total_time_seconds,avg_cpu_usage,avg_cpu_mem_usage,total_cpu_energy_usage_kwh,"
    "total_cpu_emissions_gms,avg_gpu_usage,avg_gpu_mem_usage,total_gpu_energy_usage_kwh,"
    "total_gpu_emissions_gms,total_io_write_stats,total_io_read_stats,total_ingress_stats,"
    "total_egress_stats";
/// The weights of averages where windows lacked a name (AverageWeights).
inline constexpr std::string_view kWeightsColumn = "ceems_weights";
/// The maps, and the weights behind them.
using MapTexts = std::array<std::string, model::kMetricCount + 2>;

/// A row of `units`.
struct StoredUnit {
  std::int64_t id = 0;
  std::string started_at;
  std::int64_t started_at_ts = 0, ended_at_ts = 0, num_updates = 0;
  std::string name, project, groupname, username, created_at;
  std::int64_t created_at_ts = 0;
  std::string allocation;
  std::int64_t last_updated_at_ts = 0;
  MapTexts maps;
};

/// The rows of a cluster with each of the ids, at the id's index. All ids are asked for at once, as
/// a statement costs a data base more than a row does: a few hundred ids at most.
Result<std::vector<std::vector<StoredUnit>>> find_units(Session& session,
                                                        std::string_view cluster_id,
                                                        std::span<const std::string_view> uuids);

}  // namespace ceems::store
