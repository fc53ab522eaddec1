#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// Names in a directory without "." and "..", in byte order. Errors: kNotFound,
/// kPermissionDenied, kInternal; the message names the path.
Result<std::vector<std::string>> list_directory(const std::string& path);

/// True for a directory or a link to one.
bool is_directory(const std::string& path);

/// True for /sys and wherever else a sysfs is mounted: this machine's hardware, not a copy.
bool is_own_sysfs(const std::string& path);

}  // namespace ceems::host
