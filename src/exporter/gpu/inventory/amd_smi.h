#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"

// Parsers of the JSON output of AMD's tools. They take text and run nothing. CU counts and ids of
// partitions are not in it; see sysfs.h.
namespace ceems::exporter::gpu {

/// `amd-smi static -a -B -b -p --json`: an array of GPUs and partitions, or an object with this
/// array as a member. Numbers may be text, and "N/A" counts as absent. Errors: kParse.
Result<std::vector<Device>> parse_amd_smi(std::string_view text);

/// `rocm-smi --showproductname ... --json`: an object with a member card<N> for each GPU or
/// partition, or an array of such objects. Errors: kParse.
Result<std::vector<Device>> parse_rocm_smi(std::string_view text);

}  // namespace ceems::exporter::gpu
