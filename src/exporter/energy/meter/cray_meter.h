#pragma once

#include <memory>
#include <string>

#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// The meter `cray` of an HPE Cray node, which counts the energy of the whole node in
/// <sysfs>/cray/pm_counters/energy, in whole joules at 10 Hz. Null if the node has none now. Every
/// user can read it.
std::shared_ptr<EnergyMeter> find_cray_meter(const std::string& sys);

}  // namespace ceems::exporter::energy
