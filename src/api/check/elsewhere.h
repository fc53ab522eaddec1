#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/accounting/resources.h"
#include "api/check/expected.h"
#include "api/check/job_request.h"

namespace ceems::api {

/// Where else the job could run, and why that would be better.
struct Elsewhere {
  const Resource* resource = nullptr;
  std::string text = {};
  std::optional<double> cost = {};  ///< there, by the prices of the file
};

/// The partitions that the request fits into and that cost less, or have no GPUs where runs of the
/// family used none; and other sites to which a job of this size belongs. `currency` may be empty.
std::vector<Elsewhere> find_elsewhere(const std::vector<Resource>& resources,
                                      const JobRequest& request,
                                      const Expected& expected,
                                      const Unused& unused,
                                      const std::string& currency,
                                      std::string_view language);

}  // namespace ceems::api
