#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "tsdb/client.h"

namespace ceems::ingest {

/// The emission factors of one provider ("rte", "owid", ...) over a period, in g CO2e/kWh.
struct EmissionFactor {
  std::string provider;
  std::map<std::int64_t, double> by_time;  ///< by epoch ms, not empty

  /// The newest value at or before this time; if there is none, the oldest value.
  [[nodiscard]] double at(std::int64_t time_ms) const;
  /// The mean of the values in (from, to], or at(to) if there are none.
  [[nodiscard]] double mean(std::int64_t from_ms, std::int64_t to_ms) const;
};

/// The period and country for which emission factors are read.
struct FactorRequest {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  std::string country_code;
  bool accept_incomplete = false;
};

/// Reads ceems_emissions_gCo2_kWh from one hour before the period, at every fifth minute of the
/// hour, so that the factor of a moment does not depend on the window. Of each provider only the
/// country `country_code` counts. A provider with a single country also counts if `country_code` is
/// empty, or if that country is "ZZ", the whole world. If several exporters export the same factor,
/// their mean is used.
Result<std::vector<EmissionFactor>> read_emission_factors(tsdb::Client& client,
                                                          const tsdb::Settings& settings,
                                                          const FactorRequest& request);

}  // namespace ceems::ingest
