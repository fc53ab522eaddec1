// Whether several exporters on one node agree.
#pragma once

#include <cstdint>
#include <string_view>

namespace ceems::bench::energy {

/// Runs three accounts of the same node, which start at other times and sample at other moments,
/// and prints how far they are apart from the tenth minute on.
void simulate_agreement(std::uint64_t nodes, std::uint64_t seed, std::string_view wanted);

}  // namespace ceems::bench::energy
