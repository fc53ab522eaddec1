#pragma once

#include <cstdint>
#include <string_view>

namespace ceems::exporter::gpu {

/// Number of streaming multiprocessors of an NVIDIA GPU by its product name ("NVIDIA
/// A100-PCIE-40GB"), with the values of CEEMS 0.10.2. 0 for a model that is not in the table.
std::uint64_t sm_count_of(std::string_view product_name);

}  // namespace ceems::exporter::gpu
