#pragma once

#include "exporter/collector.h"

namespace ceems::exporter {

/// --collector.hwmon: ceems_hwmon_power_*_watts and ceems_hwmon_energy_current_joules of all chips
/// below <sysfs>/class/hwmon. Chips may come and go: the directory is searched again once a minute.
CollectorSpec hwmon_collector();

}  // namespace ceems::exporter
