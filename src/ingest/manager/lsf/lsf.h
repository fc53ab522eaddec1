#pragma once

#include <memory>

#include "base/result.h"
#include "ingest/manager/batch/batch.h"
#include "ingest/manager/batch/commands.h"
#include "ingest/manager/manager.h"

namespace ceems::ingest::lsf {

/// The jobs of LSF: those that run from bjobs, those that ended from bacct. `clock` must outlive
/// it.
std::unique_ptr<BatchSource> make_source(BatchCommands commands, const Clock& clock);

}  // namespace ceems::ingest::lsf
