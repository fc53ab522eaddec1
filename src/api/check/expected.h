#pragma once

#include <cstddef>
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
  std::size_t over_limit = 0;  ///< runs of the family, of the last kMaxFamily, above the time limit
};

/// The expectation from the runs, each up to the time limit of the request only. The costs are of a
/// start at `now_ms`; `costs` may be null.
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
