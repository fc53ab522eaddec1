#pragma once

#include <memory>

#include "ingest/manager/batch/batch.h"
#include "ingest/manager/batch/commands.h"
#include "ingest/manager/openpbs/job.h"

namespace ceems::ingest::openpbs {

/// The jobs of OpenPBS from qstat, including its history. The zone and the time of `rules` are set
/// for each call. `clock` must outlive it.
std::unique_ptr<BatchSource> make_source(BatchCommands commands,
                                         JobRules rules,
                                         const Clock& clock);

}  // namespace ceems::ingest::openpbs
