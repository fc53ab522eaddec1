#pragma once

#include <string>

#include "base/result.h"

namespace ceems::api::login {

/// The key that sessions are signed with, out of a file of 32 bytes or more in hex or any other
/// text. A file that others than its owner and group may read, or that others than its owner may
/// write, is refused. Messages never hold the key.
Result<std::string> read_key(const std::string& file);

/// The same from a file that is made, with mode 0600 and 32 random bytes in hex, when it is
/// missing. Two programs that start at once agree on one.
Result<std::string> read_or_make_key(const std::string& file);

}  // namespace ceems::api::login
