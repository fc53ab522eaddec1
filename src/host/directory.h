#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// The names in a directory without "." and "..", in byte order. Errors: kNotFound,
/// kPermissionDenied, kInternal. Their messages name the path.
Result<std::vector<std::string>> list_directory(const std::string& path);

/// Whether the path is a directory or a link to one.
bool is_directory(const std::string& path);

/// Whether the path is /sys or on another mounted sysfs: it then shows the hardware of this machine
/// and is not a copy.
bool is_own_sysfs(const std::string& path);

}  // namespace ceems::host
