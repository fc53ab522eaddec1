#pragma once

#include <optional>
#include <string_view>

#include "advice/value.h"
#include "api/report/maker.h"
#include "report/report.h"

namespace ceems::api {

// What was asked for and how it ended, which each manager says in its own way. Pure functions.

/// The state in the words of SLURM where there is one for it: COMPLETED, TIMEOUT, OUT_OF_MEMORY.
/// Otherwise as the manager says it. `elapsed` is in seconds.
std::string_view common_state(const StoredUnit& unit, double elapsed);

/// CPUs. Nothing for a pod without a limit.
report::Number cpus_of(const StoredUnit& unit);

/// GPUs. For pods the resource may have any name, so they come from the time of the allocation.
report::Number gpus_of(const StoredUnit& unit);

/// Bytes for all nodes. Nothing for a pod without a limit.
report::Number memory_of(const StoredUnit& unit);

/// Whether memory_of() is what was reserved; what LSF knows may be what was used.
bool memory_is_reserved(const StoredUnit& unit);

/// Sets req.* and, of OpenPBS, the facts pbs.*: the parts of the chunks of a job with one chunk of
/// the same kind on each node. They hold digits and known words only, because a user writes the
/// select; where it has anything else, they are not known. Of a pod with one kind of GPUs,
/// k8s.gpu_resource is the name of their resource.
void add_requests(const StoredUnit& unit, advice::Facts& facts);

}  // namespace ceems::api
