#pragma once

#include <string>

#include "base/result.h"

namespace ceems::tool {

/// Makes a directory for files with secrets or rules, mode 0700, and those above it. One that
/// exists keeps its mode. The error names the path.
Result<> make_directory(const std::string& path);

}  // namespace ceems::tool
