#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "model/unit.h"
#include "tsdb/client.h"

namespace ceems::api {

/// Mean of ceems_emissions_gCo2_kWh over the window, by provider ("rte", "owid", ...), in g/kWh. Of
/// a provider with several countries the one of `country_code` counts, or none; with one country
/// it is that one unless `country_code` names another.
Result<std::map<std::string, double>> read_emission_factors(tsdb::Client& client,
                                                            const tsdb::Settings& settings,
                                                            model::Window window,
                                                            const std::string& country_code);

}  // namespace ceems::api
