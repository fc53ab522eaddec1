#pragma once

#include <string>

#include "base/result.h"

namespace ceems::os {

/// A secret given directly or, where `file` is not empty, as the file's text without blanks around
/// it. A file that only the user who started the program may read is read as long as
/// CAP_DAC_READ_SEARCH was kept (capabilities(7)): `file` must come from the operator. At most
/// 1 MiB. The error names the file, never its content. Safe for concurrent use.
Result<std::string> read_secret(const std::string& value, const std::string& file);
/// Changes whenever the file that such a name leads to is written or replaced. Reaches as far as
/// read_secret(). The same for an empty name and all files that are not there.
std::string file_state(const std::string& file);

}  // namespace ceems::os
