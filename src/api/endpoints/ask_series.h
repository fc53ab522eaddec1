#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "api/accounting/bill.h"
#include "api/endpoints/endpoint.h"
#include "api/tsdb/fleet.h"

namespace ceems::api {

/// Asks the TSDBs of the clusters; empty if there are none.
inline AskSeries ask_series(const Services& services) {
  if (services.fleet == nullptr) {
    return {};
  }
  return [fleet = services.fleet](const std::string& cluster, const std::string& query,
                                  std::int64_t from_ms, std::int64_t to_ms,
                                  std::chrono::milliseconds step) {
    return fleet->values(cluster, query, from_ms, to_ms, step);
  };
}

}  // namespace ceems::api
