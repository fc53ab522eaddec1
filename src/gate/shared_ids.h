#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "promql/reach.h"
#include "store/reader.h"

namespace ceems::gate {

// Ids that a resource manager gave out again: numbers of SLURM jobs begin anew after MaxJobId or a
// new database. Who owns one unit of such an id must not read the times of the others.

/// The end of what runs still, and of times without bound: some 31,000 years. Far from where
/// integers overflow, and seconds as floating point still tell milliseconds apart.
inline constexpr std::int64_t kFarTime = 1'000'000'000'000'000;

/// When the units lived that had one id, epoch milliseconds.
struct SharedId {
  std::vector<promql::TimeSpan> own = {};
  std::vector<promql::TimeSpan> others = {};
};
using SharedIds = std::map<std::string, SharedId, std::less<>>;

/// Those ids that units in scope and others had. An id is one unit's at a time: what runs still is
/// over when the next one with its id starts.
SharedIds shared_ids_among(std::vector<store::UnitLife> lives);

/// The times at which a query is evaluated: start, start + step, … up to end. Epoch milliseconds,
/// none farther than kFarTime.
struct Evaluation {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  std::int64_t step_ms = 1;  ///< positive
  bool operator==(const Evaluation&) const = default;
};

/// The times of `asked` at which a query with this reach, looking back so far (not negative, at
/// most kFarTime), reads nothing of others, nor of the minute around their lives: all of them, or
/// the last run of those that read something of the own units. Nothing where there are none, and
/// where a part would mean something else ("@ start()").
std::optional<Evaluation> narrowed(const Evaluation& asked,
                                   const promql::Reach& reach,
                                   std::int64_t lookback_ms,
                                   const SharedIds& ids);

}  // namespace ceems::gate
