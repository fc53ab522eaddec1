#pragma once

#include <vector>

#include "exporter/collector.h"

namespace ceems::exporter {

/// All collectors in the order of the help text; unit collectors come before `energy`.
std::vector<CollectorSpec> all_collectors();

}  // namespace ceems::exporter
