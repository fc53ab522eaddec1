#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/tsdb/series_tsdb.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"

namespace ceems::api {

// Usage by hour. What units reserved is from the database; their energy is from the counters
// ceems_compute_unit_energy_joules_total of the TSDB (docs/energy.md): on each node the domain
// "node", and where a node has none the sum of its other domains. The daily sums do the same
// (ingest/updater/unit_counters.h).

inline constexpr std::int64_t kUsageHourMs = 3'600'000;

/// The beginnings of the hours that overlap the period, both ends of which are included: steps of
/// 3600 s from the beginning of the first day in the zone. So hours begin at half past where the
/// zone differs from UTC by half an hour, and a day has 23 to 25 of them.
std::vector<std::int64_t> hours_of(std::int64_t from_ms, std::int64_t to_ms, const TimeZone& zone);

/// A unit as the database knows it, epoch ms.
struct HourUnit {
  std::string cluster = {}, uuid = {}, user = {}, project = {};
  std::int64_t created_ms = 0, started_ms = 0;
  std::int64_t ended_ms = 0;                   ///< 0: it runs
  std::optional<double> cpus = {}, gpus = {};  ///< reserved
};

/// The part of the hour in which the unit ran, up to now: from 0 to 1.
double share_of_hour(const HourUnit& unit, std::int64_t hour_ms, std::int64_t now_ms);

/// What the counters of a unit counted in an hour, in kWh. What was not measured is absent.
struct HourEnergy {
  /// The difference between the last values in this hour and in the hour before, so hours add up to
  /// what was counted. Where there is only one of them, or the counter began anew, what increase()
  /// makes of the samples in the hour.
  std::optional<double> all = {}, gpus = {};
  /// The same, with the whole value of counters that had none in the hour before: they began at 0
  /// if the unit started in this hour.
  std::optional<double> all_of_new = {}, gpus_of_new = {};
};
/// By the id of the unit, one for each hour. The key of a whole cluster is empty.
using EnergyByUnit = std::map<std::string, std::vector<HourEnergy>, std::less<>>;

/// Whose energy to read.
struct EnergyRequest {
  std::string cluster_id = {};
  std::vector<std::int64_t> hours = {};  ///< of hours_of(), without gaps
  bool gpus = false;                     ///< also the energy of GPUs on their own
  /// The sum of all units that exporters have seen, whether the database has them or not. Without
  /// `all_of_new`, so what a unit used before its first sample is estimated.
  bool whole_cluster = false;
  /// Otherwise: these units, each in the hours of its life.
  std::vector<HourUnit> units = {};
  Clock::SteadyTime until = Clock::SteadyTime::max();  ///< no query begins later
};

/// Samples may come this much later than a unit started, or ended.
inline constexpr std::int64_t kHourSlackMs = 5LL * 60 * 1000;

/// Reads it by range queries with a step of an hour, each of one day and at most 100 units. Errors:
/// any of the client, and kTimeout.
Result<EnergyByUnit> read_energy(const ClusterTsdb& tsdb,
                                 const EnergyRequest& request,
                                 const Clock& clock);

/// The query for the units whose ids match the expression, or for the whole cluster if it is empty.
/// `cluster_matcher` is empty or begins with a comma.
std::string energy_query(const std::string& ids, const std::string& cluster_matcher, bool gpus);

/// When a unit lived that must not be mixed up with another one of the same id, epoch ms.
struct HourLife {
  std::string uuid = {};
  std::int64_t started_ms = 0, ended_ms = 0;  ///< as in HourUnit
};

/// The energy of each unit in each hour, in kWh: in the order of `units` and `hours`. All are of
/// one cluster. `others` are the lives of units with the same ids that are not among them. Energy
/// of an hour in which one of these lived, or units of the same id in different projects or of
/// different users, is not counted. Energy of several runs of one user is counted once.
struct UnitEnergy {
  std::vector<std::optional<double>> all = {}, gpus = {};
};
std::vector<UnitEnergy> energy_of_units(const std::vector<HourUnit>& units,
                                        const std::vector<HourLife>& others,
                                        const std::vector<std::int64_t>& hours,
                                        const EnergyByUnit& energy);

}  // namespace ceems::api
