#pragma once

#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/energy/sampler.h"

namespace ceems::exporter {

/// Exposes the counters of a sampler (docs/energy.md) and starts it in start(). Each collect()
/// makes it tick if its last sample is old, so that the page is fresh also where it was never
/// started.
std::unique_ptr<Collector> make_energy_collector(std::unique_ptr<energy::Sampler> sampler,
                                                 const Clock& clock,
                                                 std::string hostname);

}  // namespace ceems::exporter
