#pragma once

#include <string>

#include "base/result.h"

namespace ceems::os {

/// Returns `value`, or, if `file` is not empty, the text of that file without surrounding blanks.
/// As long as the process keeps CAP_DAC_READ_SEARCH (capabilities(7)), it can read files that only
/// the user who started the program may read; therefore `file` must come from the operator. The
/// limit is 1 MiB. Errors name the file, never its content. Safe for concurrent use.
Result<std::string> read_secret(const std::string& value, const std::string& file);
/// A fingerprint of a file that changes whenever the file is written or replaced. Can examine the
/// same files as read_secret(). Empty for an empty name and for a file that does not exist.
std::string file_state(const std::string& file);

}  // namespace ceems::os
