#pragma once

#include "config/flags.h"
#include "exporter/collector_set.h"
#include "exporter/doctor/doctor.h"
#include "exporter/options.h"

namespace ceems::exporter {

/// What the doctor looks at, from the flags of the exporter (already parsed) and from this process:
/// environment, limits, and the capabilities it would keep: those of the process, or for root all
/// that the bounding set leaves.
DoctorContext doctor_context(const config::FlagSet& flags,
                             const Options& options,
                             const CollectorSet& known);

}  // namespace ceems::exporter
