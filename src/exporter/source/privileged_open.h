#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter {

/// Opens a file for reading. If that is refused, it tries again with CAP_DAC_READ_SEARCH raised for
/// the one call. Since Linux 5.10 and its backports only root may read the energy counters of
/// powercap (CVE-2020-8694), so trying is the only reliable test.
Result<UniqueFd> open_privileged(const char* path);

}  // namespace ceems::exporter
