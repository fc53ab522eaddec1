#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "promql/reach.h"
#include "store/reader.h"

namespace ceems::gate {

// IDs that a resource manager has used more than once: SLURM starts again at FirstJobId after
// MaxJobId, or with a new database. The owner of one unit with such an ID must not read the times
// of the other units.

/// The end of units that are still running and of unbounded times, in milliseconds: some 31,000
/// years. It is far from integer overflow, and as a floating-point number of seconds it still has a
/// resolution of milliseconds.
inline constexpr std::int64_t kFarTime = 1'000'000'000'000'000;

inline constexpr promql::TimeSpan kAllTimes{.from_ms = -kFarTime, .to_ms = kFarTime};

/// The lives of all units that had one ID, in milliseconds since the epoch.
struct SharedId {
  std::vector<promql::TimeSpan> own = {};
  std::vector<promql::TimeSpan> others = {};
};
using SharedIds = std::map<std::string, SharedId, std::less<>>;

/// The lives of all units by ID. Only one unit has an ID at a time: a unit that seems to be running
/// has ended when the next one with its ID starts.
SharedIds lives_by_id(std::vector<store::UnitLife> lives);

/// The same for the IDs that both units in scope and other units had.
SharedIds shared_ids_among(std::vector<store::UnitLife> lives);

/// The times at which a query is evaluated: start, start + step, … up to end, in milliseconds since
/// the epoch, none beyond ±kFarTime.
struct Evaluation {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  std::int64_t step_ms = 1;  ///< positive
  bool operator==(const Evaluation&) const = default;
};

/// The times of `requested` at which a query reads neither others' units nor the minute before and
/// after their lives: all times, or the last consecutive ones that read some of the user's own
/// units. `lookback_ms` is between 0 and kFarTime. Returns nothing if there are no such times, or
/// if the query would mean something else with fewer times ("@ start()").
std::optional<Evaluation> narrowed(const Evaluation& requested,
                                   const promql::Reach& reach,
                                   std::int64_t lookback_ms,
                                   const SharedIds& ids);

/// The times of `requested` at which a query that reads `around` each of them may show one ID to
/// the owner of its `own` lives, in order: from a minute before each of these lives to a minute
/// after it, without the times at which the query reads something of `others` or of the minute
/// before and after them. `lookback_ms` is as above. Every part has at least one time.
std::vector<Evaluation> own_parts(const Evaluation& requested,
                                  const promql::TimeSpan& around,
                                  std::int64_t lookback_ms,
                                  const SharedId& lives);

}  // namespace ceems::gate
