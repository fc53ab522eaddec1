#pragma once

#include <cstdint>
#include <string_view>

namespace ceems::exporter::gpu {

/// Streaming multiprocessors of an NVIDIA GPU by its product name ("NVIDIA A100-PCIE-40GB"): the
/// table of spec exporter-units §7.4. 0 for a model that is not in it.
std::uint64_t sm_count_of(std::string_view product_name);

}  // namespace ceems::exporter::gpu
