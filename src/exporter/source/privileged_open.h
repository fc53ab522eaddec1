#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter {

/// Opens a file for reading; where that is refused, again with CAP_DAC_READ_SEARCH raised for the
/// one call. Energy counters of powercap are readable by root only since Linux 5.10 and its
/// back-ports (CVE-2020-8694), so trying is the only sure test.
Result<UniqueFd> open_privileged(const char* path);

}  // namespace ceems::exporter
