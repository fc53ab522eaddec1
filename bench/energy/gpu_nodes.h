// Nodes whose GPUs draw most of the power, beside jobs that use none.
#pragma once

#include <cstdint>
#include <string_view>

namespace ceems::bench::energy {

/// Simulates `nodes` nodes for each scenario whose name contains `wanted`, and prints a table of
/// the errors of our accounting by scenario and meters.
void simulate_gpu_nodes(std::uint64_t nodes,
                        double seconds,
                        std::uint64_t seed,
                        std::string_view wanted);

}  // namespace ceems::bench::energy
