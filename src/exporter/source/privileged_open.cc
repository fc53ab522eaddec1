#include "exporter/source/privileged_open.h"

#include <linux/capability.h>

#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter {

Result<UniqueFd> open_privileged(const char* path) {
  auto fd = host::open_file(path);
  if (fd || fd.error().code != ErrorCode::kPermissionDenied) {
    return fd;
  }
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  return host::open_file(path);
}

}  // namespace ceems::exporter
