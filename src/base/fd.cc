#include "base/fd.h"

#include <unistd.h>

namespace ceems {

void UniqueFd::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old >= 0 && old != fd) {
    ::close(old);
  }
}

}  // namespace ceems
