#pragma once

#include <cstdint>
#include <optional>

#include "api/accounting/prices.h"
#include "api/check/past_runs.h"
#include "report/expectation.h"

namespace ceems::api {

/// What one run of a job is expected to use. What is not known is absent.
struct Expected {
  std::optional<report::Range> wait = {}, elapsed = {};  ///< seconds
  std::optional<report::Range> kwh = {}, grams = {}, cost = {};
};

/// The expectation from the runs. The costs are of a start at `now_ms`; `costs` may be null.
Expected expect_request(const PastRuns& past,
                        const JobRequest& request,
                        Costs* costs,
                        std::int64_t now_ms);

/// The medians of what the runs of the family left unused of their requests. Absent where it is not
/// known, or nothing.
struct Unused {
  report::Number gpus = {}, cpus = {}, memory = {}, time_limit = {};

  [[nodiscard]] bool any() const { return gpus || cpus || memory || time_limit; }
};
Unused unused_by(const std::vector<store::FamilyRun>& family);

}  // namespace ceems::api
