#pragma once

#include <memory>

#include "exporter/collector.h"
#include "exporter/energy/sampler.h"

namespace ceems::exporter {

/// Exposes the counters of a sampler (docs/energy.md). `sampler` may be started or not; each
/// collect() makes it tick if its last sample is old.
std::unique_ptr<Collector> make_energy_collector(std::unique_ptr<energy::Sampler> sampler,
                                                 const Clock& clock,
                                                 std::string hostname);

}  // namespace ceems::exporter
