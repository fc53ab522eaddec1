#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "access/policy.h"
#include "api/check/job_request.h"
#include "base/result.h"
#include "report/expectation.h"
#include "report/report.h"
#include "store/reader.h"
#include "store/reports.h"

namespace ceems::api {

/// A run that completed. What is not known is absent.
struct PastRun {
  store::Family family = {};
  report::Number cpus = {}, gpus = {}, time_limit = {};
  report::Number wait = {}, elapsed = {};  ///< in seconds
  report::Number kwh = {}, grams = {};
};

/// Whose runs an expectation rests on, from the most alike on.
enum class Basis : std::uint8_t { kFamily, kUser, kProject, kPartition, kNone };
std::string_view to_string(Basis basis);

/// The runs that a request is compared with.
struct PastRuns {
  Basis basis = Basis::kNone;
  std::string name = {};  ///< of the family, project or partition
  /// The newest first, with their use as if each had been as large as the request.
  std::vector<PastRun> runs = {};
  /// The completed runs of the family of just this size, the newest first, as they were.
  std::vector<store::FamilyRun> family = {};
};

/// A project or partition is answered about only if its runs are of so many people, none of whom
/// has more than half of them.
inline constexpr std::size_t kLeastPeople = 5;

/// Finds the runs of the caller's family of the job, else others of the caller, else the runs of
/// the project, if the caller is in it, or of the partition. At most four queries, each of some
/// thousand rows. Passes on errors of the reader.
Result<PastRuns> find_past_runs(store::Reader& reader,
                                const access::Identity& identity,
                                const JobRequest& request,
                                std::int64_t now_ms);

/// How often ranges of energy held for the newest runs of the cluster, each set against the earlier
/// ones of its family. Reads some thousand rows. Passes on errors of the reader.
Result<report::Held> held_on(store::Reader& reader,
                             const std::string& cluster_id,
                             std::int64_t now_ms);

}  // namespace ceems::api
