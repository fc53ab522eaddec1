#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/batch/job.h"
#include "ingest/manager/manager.h"

namespace ceems::ingest {

/// The jobs of one batch system. Must be called from one thread at a time. If a call fails, it may
/// have passed on only some of the jobs.
class BatchSource {
 public:
  using JobSink = std::function<void(BatchJob)>;

  virtual ~BatchSource() = default;
  /// Passes on every job that ran in the window or ended at most kBatchOverlap before it. It may
  /// pass on others, and one job twice; that with an end then counts.
  virtual Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) = 0;
  /// Does the same for these ids, whenever the jobs ran. Jobs that it does not know are left out.
  virtual Result<> jobs_by_id(const std::vector<std::string>& ids,
                              const JobSink& job,
                              std::stop_token stop) = 0;
};

/// How long before a window ended jobs are requested again, because their end may have been
/// recorded late.
inline constexpr auto kBatchOverlap = std::chrono::minutes(30);

/// Creates the manager for any source of jobs.
///
/// - A job that ran at the end of the last window and is missing from the next one is asked for by
///   its id, because its end was recorded late. A job that is no longer known stays as it is.
/// - A job that ended at most kBatchOverlap before the window and was not reported yet is reported
///   now.
/// - A job whose start was recorded late counts from its start.
/// - A job that was requeued is one unit for each start that a fetch saw. A start that a later one
///   has replaced ends, as REQUEUED, at the end of the last window in which it was seen.
/// - Users and projects are taken from the jobs of the fetch (see members_are_of_jobs()). Without
/// `members`, jobs do not
///   make their users members of projects.
std::unique_ptr<ResourceManager> make_batch_manager(std::string cluster_id,
                                                    std::unique_ptr<BatchSource> source,
                                                    TimeZone zone,
                                                    bool members);

}  // namespace ceems::ingest
