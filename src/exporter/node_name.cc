#include "exporter/node_name.h"

#include <sys/utsname.h>

#include <cstdlib>

namespace ceems::exporter {

std::string node_name(bool emptied) {
  if (emptied) {
    return {};
  }
  // Called once by main, before threads start.
  const char* given = std::getenv("NODE_NAME");
  if (given != nullptr && *given != '\0') {
    return given;
  }
  utsname name{};
  return ::uname(&name) == 0 ? std::string(static_cast<const char*>(name.nodename)) : std::string();
}

}  // namespace ceems::exporter
