// Several jobs on one GPU: by MPS, on instances (MIG) and by time slices.
#pragma once

#include <cstdint>

namespace ceems::bench::energy {

/// Simulates `nodes` GPUs for each way of sharing and prints a table of the errors of our
/// accounting and of equal parts, which is what the reference's rules give where it is not known
/// which job uses the GPU how much.
void simulate_gpus(std::uint64_t nodes, double seconds, std::uint64_t seed);

}  // namespace ceems::bench::energy
