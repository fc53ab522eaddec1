#pragma once

#include "config/flags.h"
#include "exporter/collector_set.h"
#include "exporter/doctor/doctor.h"
#include "exporter/options.h"

namespace ceems::exporter {

/// The doctor's input, from the parsed flags of the exporter and from this process: its
/// environment, limits, and the capabilities that it would keep. These are the process's, or for
/// root all in the bounding set.
DoctorContext doctor_context(const config::FlagSet& flags,
                             const Options& options,
                             const CollectorSet& known);

}  // namespace ceems::exporter
