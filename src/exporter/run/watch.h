#pragma once

#include "base/result.h"
#include "exporter/run/job.h"
#include "exporter/run/session.h"

namespace ceems::exporter::run {

/// Measures what Options::watch names, a process or a job of SLURM that runs on this node already,
/// until it ends or a signal comes. `here` is the job of this process. Errors: it does not run
/// here, or belongs to another user; nothing was measured then.
Result<> watch(const Options& options, const Job& here);

}  // namespace ceems::exporter::run
