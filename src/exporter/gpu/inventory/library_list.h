#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

/// First argument of this program when it is run to list the GPUs of a vendor by its library:
/// `ceems_exporter list-gpus nvidia [LIBRARY]`.
inline constexpr const char* kListCommand = "list-gpus";

/// That command: prints what parse_device_list() reads and gives 0; or gives 1, with one line on
/// standard error. `arguments` are those behind kListCommand.
int list_gpus(std::span<const char* const> arguments);

/// A JSON array of GPUs (RFC 8259), the fields of Device and Instance by their names; without
/// vGPUs' ids, render minors, and what else is found in sysfs.
std::string device_list_text(const std::vector<Device>& devices);

/// kParse: no such array, or more GPUs or instances than there can be.
Result<std::vector<Device>> parse_device_list(std::string_view text);

}  // namespace ceems::exporter::gpu
