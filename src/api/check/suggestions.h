#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "access/policy.h"
#include "advice/rule.h"
#include "api/check/job_request.h"
#include "base/result.h"
#include "report/report.h"
#include "store/reader.h"
#include "store/reports.h"

namespace ceems::api {

/// What reports of earlier runs found that holds of the request, too.
struct Suggestion {
  std::string rule = {}, text = {};
  std::vector<std::string> lines = {}, was = {};  ///< as in a script, without "#SBATCH"
  report::Number saves_kwh = {};                  ///< a run
  std::size_t seen_in = 0;                        ///< of the last 8 runs with a report
};

/// The suggestions, those with the most severe findings first. `family` are the runs of the
/// caller's family that are just as large as the request, newest first. Passes on errors of the
/// reader.
Result<std::vector<Suggestion>> suggest(store::Reader& reader,
                                        const access::Identity& identity,
                                        const advice::RuleSet& rules,
                                        const JobRequest& request,
                                        std::string_view manager,
                                        std::string_view language,
                                        const std::vector<store::FamilyRun>& family);

}  // namespace ceems::api
