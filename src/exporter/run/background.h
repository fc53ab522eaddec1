#pragma once

#include "base/result.h"
#include "exporter/run/job.h"
#include "exporter/run/session.h"

namespace ceems::exporter::run {

/// Measures the job in the background until stop() or the end of the session of processes, such as
/// the job's script. Prints variables for the shell that called it. Errors: not in a job of a
/// resource manager, or nothing can be measured.
Result<> start_in_background(const Options& options, Job job);

/// Ends a measurement of start_in_background() and waits for its report.
Result<> stop_in_background(const Options& options, const Job& job);

}  // namespace ceems::exporter::run
