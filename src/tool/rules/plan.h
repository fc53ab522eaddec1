#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tool/rules/model.h"

namespace ceems::tool::rules {

/// What an operator decides on the command line.
struct Choices {
  std::vector<std::string> chassis;  ///< CHASSIS for all jobs, or JOB=CHASSIS
  std::vector<std::string> chips;    ///< CHIP or JOB=CHIP
  bool skip_counted =
      true;  ///< leave out jobs whose exporters count the energy of units themselves
};

/// Asks which of the options is meant, and returns its number.
using Ask = std::function<Result<std::size_t>(std::string_view question,
                                              const std::vector<std::string>& options)>;

struct Plan {
  std::deque<GpuPlan> gpus;  ///< each belongs to at least one host plan
  std::vector<HostPlan> hosts;
  std::vector<std::string> remarks;  ///< jobs that are left out, and why
  std::vector<std::string> errors;   ///< jobs that cannot be planned as the operator wants
};

/// Decides how the power of the hosts of each job is measured and which jobs report their GPUs. The
/// result points into `site`.
Plan make_plan(const Site& site, const Choices& choices, const Ask& ask);

/// Whether the site has series that CEEMS 0.11 and later export under other names than 0.10.2.
bool has_later_names(const Site& site);

std::string_view to_string(Family family);

}  // namespace ceems::tool::rules
