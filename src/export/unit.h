#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_members.h"
#include "base/result.h"
#include "model/unit.h"
#include "store/reader.h"

namespace ceems::exporting {

/// A unit that has ended. Moments are epoch milliseconds, 0 if not known. Texts come from resource
/// managers and are untrusted.
struct ExportedUnit {
  std::string cluster = {}, manager = {}, uuid = {}, name = {};
  std::string user = {}, group = {}, project = {}, state = {};
  std::string started = {};  ///< as stored, a part of the unit's key
  std::int64_t created_ms = 0, started_ms = 0, ended_ms = 0;
  JsonMembers allocation = {}, tags = {};
  model::MetricMap times = {};         ///< total_time_seconds
  std::optional<double> cpu_kwh = {};  ///< CPUs, memory and the rest of the node
  std::optional<double> gpu_kwh = {};  ///< absent: not measured
  std::optional<double> grams = {};    ///< CO2e
  std::string emission_source = {};    ///< of the factor, such as "rte"
  std::optional<double> cpu_use = {}, memory_use = {}, gpu_use = {};  ///< %, means

  /// The id that SLURM shows of a task of an array or a part of a heterogeneous job; else the uuid.
  [[nodiscard]] std::string shown_id() const;
  /// Seconds from start to end, without those in which it was suspended where that is known.
  [[nodiscard]] double seconds() const;
};

/// YYYY-MM-DDTHH:MM:SSZ; empty for 0.
std::string utc_text(std::int64_t ms);

/// Behind which unit an export goes on.
struct Position {
  std::int64_t ended_ms = 0;
  store::UnitKey key = {};
};

struct Selection {
  store::TimeRange ended = {};  ///< both ends included
  std::string cluster = {};     ///< empty: all
  std::optional<Position> after = {};
};

/// Reads the units that ended in the range, ordered by end and key, in pages, so that no query
/// takes long. Units that are ignored are left out. Ends with the first error, of the database or
/// of `take`.
Result<> each_unit(store::Reader& reader,
                   const Selection& selection,
                   const std::function<Result<>(ExportedUnit&)>& take);

/// A unit behind a place of the list of ended units (store/ended_units.h).
struct EndedUnit {
  std::int64_t place = 0;
  ExportedUnit unit = {};
};
Result<std::vector<EndedUnit>> ended_units(store::Reader& reader,
                                           std::int64_t after,
                                           std::size_t limit);

}  // namespace ceems::exporting
