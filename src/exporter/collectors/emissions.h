#pragma once

#include <string>
#include <vector>

#include "exporter/collector.h"
#include "exporter/emissions/provider.h"

namespace ceems::exporter {

/// The collector without its flags, for tests, with the providers of these keys, or all usable ones
/// if `keys` is empty. kInvalidArgument: a requested provider cannot be used.
Result<std::unique_ptr<Collector>> make_emissions_collector(const CollectorContext& context,
                                                            const std::vector<std::string>& keys,
                                                            emissions::Environment environment);

}  // namespace ceems::exporter
