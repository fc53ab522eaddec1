#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

/// First argument of this program when it runs to list the GPUs of a vendor through its library:
/// `ceems_exporter list-gpus nvidia [LIBRARY]`.
inline constexpr const char* kListCommand = "list-gpus";

/// Runs that command: prints a list for parse_device_list() and returns 0, or prints one line to
/// standard error and returns 1. `arguments` are those after kListCommand.
int list_gpus(std::span<const char* const> arguments);

/// A JSON array of GPUs (RFC 8259) with the fields of Device and Instance by name, without the ids
/// of vGPUs, render minors, and other values from sysfs.
std::string device_list_text(const std::vector<Device>& devices);

/// kParse: not such an array, or too many GPUs or instances.
Result<std::vector<Device>> parse_device_list(std::string_view text);

}  // namespace ceems::exporter::gpu
