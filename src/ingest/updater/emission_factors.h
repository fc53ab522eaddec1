#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "tsdb/client.h"

namespace ceems::ingest {

/// g CO2e per kWh of one provider ("rte", "owid", ...) over a time.
struct EmissionFactor {
  std::string provider;
  std::map<std::int64_t, double> by_time;  ///< by epoch ms, not empty

  /// The newest value at or before a moment, else the oldest.
  [[nodiscard]] double at(std::int64_t time_ms) const;
  /// Mean of the values in (from, to], else at(to).
  [[nodiscard]] double mean(std::int64_t from_ms, std::int64_t to_ms) const;
};

/// What an emission factor is read for.
struct FactorRequest {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  std::string country_code;
  bool accept_incomplete = false;
};

/// ceems_emissions_gCo2_kWh from an hour before the time on, at every fifth minute of the hour, so
/// that a moment has the same factor whatever the window. Of a provider with several countries the
/// one of `country_code` counts, or none; with one country it is that one unless `country_code`
/// names another. Several exporters may export the same factor: their mean.
Result<std::vector<EmissionFactor>> read_emission_factors(tsdb::Client& client,
                                                          const tsdb::Settings& settings,
                                                          const FactorRequest& request);

}  // namespace ceems::ingest
