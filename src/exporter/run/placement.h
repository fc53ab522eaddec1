#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/paths.h"

namespace ceems::exporter::run {

/// A rank of a parallel program, and the CPUs on which it may run.
struct Rank {
  std::uint64_t number = 0;
  std::vector<int> cpus = {};  ///< ascending
};

/// The ranks among these processes by their environment (SLURM, PMI, PMIx, Open MPI, Flux), each
/// once, by number. Of several processes of a rank, the one that used most CPU time counts.
std::vector<Rank> read_ranks(const host::Paths& paths, const std::vector<int>& pids);

/// "4 ranks, each on 8 CPUs (2 a core); GPUs on NUMA nodes 0, 1; mlx5_0 on NUMA node 0". Empty
/// without ranks.
std::string placement_text(const host::Paths& paths, const std::vector<Rank>& ranks);

/// "Ranks 0 to 5 share the CPUs 0-3": of ranks that are more than the CPUs on which they may run.
std::vector<std::string> placement_faults(const std::vector<Rank>& ranks);

}  // namespace ceems::exporter::run
