#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/rules/model.h"
#include "tsdb/client.h"

namespace ceems::tool::rules {

struct TimeRange {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

/// Asks Prometheus which jobs export which of the series that rules are made of, in this time.
/// Series of units are not read one by one, so the answers stay small. `remarks` gets a line for
/// each answer that cannot be used. Errors: any of tsdb::Client, with the question.
Result<Site> discover(tsdb::Client& client,
                      TimeRange range,
                      const std::string& country_code,
                      std::vector<std::string>& remarks);

/// The host of an instance: without ":" and digits at its end.
std::string host_of(std::string_view instance);

}  // namespace ceems::tool::rules
