#pragma once

#include <vector>

#include "exporter/collector.h"

namespace ceems::exporter {

/// All collectors, by name; their order has no meaning.
std::vector<CollectorSpec> all_collectors();

}  // namespace ceems::exporter
