#include "net/server/request_memory.h"

namespace ceems::net {

bool RequestMemory::add(std::size_t before, std::size_t after) {
  if (after <= before) {
    used_ -= before - after;
    return true;
  }
  const std::size_t more = after - before;
  const std::size_t total = used_.fetch_add(more) + more;
  if (total > limit_) {
    used_ -= more;
    return false;
  }
  if (total >= kBurst) {
    burst_ = true;
  }
  return true;
}

bool RequestMemory::burst_is_over() {
  return burst_ && used_ < kBurst / 8 && burst_.exchange(false);
}

}  // namespace ceems::net
