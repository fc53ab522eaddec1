#pragma once

#include <string>

#include "base/result.h"

namespace ceems::api::login {

/// Reads the key that signs sessions from a text file, e.g. 32 random bytes in hex. Refuses a file
/// that anyone except owner and group may read, or that anyone except the owner may write. Errors
/// never contain the key.
Result<std::string> read_key(const std::string& file);

/// Like read_key(), but creates a missing file with mode 0600 and 32 random bytes in hex. Two
/// programs that start at the same time use the same key.
Result<std::string> read_or_make_key(const std::string& file);

}  // namespace ceems::api::login
