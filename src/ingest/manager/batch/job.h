#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time/time_zone.h"
#include "model/unit.h"

namespace ceems::ingest {

/// One run of a batch job, as LSF or OpenPBS describes it. Texts are untrusted.
struct BatchJob {
  std::string id;  ///< "6", "6[1]", "12[3].srv"
  std::string name = {}, project = {}, group = {}, user = {};
  std::string state = {};          ///< its last known state
  std::string running_state = {};  ///< what its state is called while it runs
  std::int64_t submit_ms = 0;      ///< epoch; 0: unknown
  std::int64_t start_ms = 0;       ///< 0: it never ran
  std::int64_t end_ms = 0;         ///< 0: it is running
  std::int64_t nodes = 0, cpus = 0, gpus = 0;
  double memory_bytes = 0;                                     ///< 0: unknown
  std::int64_t time_limit_seconds = 0;                         ///< 0: none, or unknown
  std::int64_t requested_cpus = 0;                             ///< 0: unknown
  double requested_memory_bytes = 0;                           ///< 0: unknown
  std::vector<std::string> hosts = {};                         ///< each once
  std::vector<std::pair<std::string, std::string>> tags = {};  ///< besides `nodelist`

  bool operator==(const BatchJob&) const = default;
};

/// Limits on counts, so that products with times do not overflow.
inline constexpr std::int64_t kMaxBatchCount = 1'000'000'000;

/// Returns the job as it stood at the end of the window: a job that ended later is still running,
/// and one that started later, or never, is left out. Its times are those between `counted_from_ms`
/// and the end of the window; all of them if it ended before.
std::optional<model::Unit> to_unit(const BatchJob& job,
                                   model::Window window,
                                   std::int64_t counted_from_ms,
                                   const TimeZone& zone);

}  // namespace ceems::ingest
