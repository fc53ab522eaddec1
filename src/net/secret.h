#pragma once

#include <string>

#include "base/result.h"

namespace ceems::net {

/// A secret given directly or, where `file` is not empty, as the file's text without blanks around
/// it. The error names the file, never its content.
Result<std::string> read_secret(const std::string& value, const std::string& file);

}  // namespace ceems::net
