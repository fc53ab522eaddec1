#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "base/fd.h"
#include "exporter/ipmi/conversation.h"

namespace ceems::exporter::ipmi {

/// Opens a device file; open_privileged() in the program.
using OpenDevice = std::function<Result<UniqueFd>(const char* path)>;

/// Opens the kernel's OpenIPMI device number `number` (Documentation/driver-api/ipmi.rst): the
/// first of DEV/ipmiN, DEV/ipmi/N and DEV/ipmidev/N that exists. The descriptor stays open, so that
/// privileges can be dropped afterwards. kNotFound if there is none; kPermissionDenied;
/// kUnavailable if it is not an IPMI device.
Result<std::unique_ptr<Port>> open_ipmi(const std::filesystem::path& dev,
                                        long number,
                                        const OpenDevice& open);

}  // namespace ceems::exporter::ipmi
