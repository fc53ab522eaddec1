#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "api/endpoints/usage_series.h"
#include "base/json.h"

namespace ceems::api {

/// The same days of this period and of the one before, without a day that has not ended. Two
/// periods that are not known for 80 % of their days are not compared.
struct ComparedUsage {
  std::size_t days = 0;
  UsageSums now = {}, before = {};
};

/// Both, for the days or months of `sums`. Nothing where no day has ended. Passes on errors of the
/// reader.
Result<std::optional<ComparedUsage>> read_compared_usage(const Services& services,
                                                         const Call& call,
                                                         const UsageRequest& request,
                                                         const UsageSums& sums);

/// Appends the member "compared": the sums of these groups, and how much of both periods is known.
void append_compared_usage(JsonWriter& json,
                           const ComparedUsage& compared,
                           const UsageRequest& request,
                           const std::vector<std::string>& shown,
                           bool others,
                           bool priced);

}  // namespace ceems::api
