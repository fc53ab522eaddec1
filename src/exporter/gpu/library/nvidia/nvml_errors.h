#pragma once

#include <string>

#include "exporter/gpu/library/nvidia/nvml_api.h"

// What the library's error numbers mean for an operator (enum nvmlReturn_t of the NVML API
// Reference Guide).
namespace ceems::exporter::gpu::nvml {

/// False for success and for answers that a healthy GPU gives: a value that it does not have, may
/// not be read, or is not there at the moment.
bool is_failure(Return result);

/// A short name for labels, "gpu_is_lost"; "error_N" for a number that is not in the guide.
std::string error_name(Return result);

/// The meaning, the number, and what to do: "the GPU has fallen off the bus (15); ...".
std::string describe(Return result);

}  // namespace ceems::exporter::gpu::nvml
