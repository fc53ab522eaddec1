#pragma once

#include <string>
#include <vector>

#include "exporter/collector.h"
#include "exporter/emissions/provider.h"

namespace ceems::exporter {

/// The collector without its flags, for tests: the providers with these keys, all usable ones for
/// none. kInvalidArgument: a provider that was asked for cannot be used.
Result<std::unique_ptr<Collector>> make_emissions_collector(const CollectorContext& context,
                                                            const std::vector<std::string>& keys,
                                                            emissions::Environment environment);

/// --collector.emissions: emission factors of electricity by provider and country. Services are
/// asked in the background; their last factors are served for up to a day.
CollectorSpec emissions_collector();

}  // namespace ceems::exporter
