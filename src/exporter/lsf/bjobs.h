#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::lsf {

/// What LSF allocated to one job on this host.
struct Allocation {
  std::size_t slots = 0;  ///< CPUs: how often the host's name is in ALLOC_SLOT
  /// Device minors of whole GPUs (N of /dev/nvidia<N>), ascending and each once.
  std::vector<unsigned> gpu_minors = {};
  bool mig = false;  ///< the job has parts of GPUs, which LSF does not name

  bool operator==(const Allocation&) const = default;
};

/// Allocations by the id of the job, "6" or "6[1]".
using AllocationMap = std::map<std::string, Allocation, std::less<>>;

/// The fields that parse_bjobs() needs: `bjobs -json -o FIELDS`.
inline constexpr std::string_view kBjobsFields = "jobid jobindex alloc_slot nalloc_slot gpu_alloc";

/// Reads the output of bjobs (IBM Spectrum LSF, bjobs -json): the jobs that have slots or GPUs on
/// `host`. Names of hosts are equal if they are equal up to the first dot, in any case. Records
/// without a job id, such as those with an ERROR, are left out. kParse: not such a document.
Result<AllocationMap> parse_bjobs(std::string_view json_text, std::string_view host);

}  // namespace ceems::exporter::lsf
