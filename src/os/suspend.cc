#include "os/suspend.h"

#include <ctime>

namespace ceems::os {
namespace {

std::chrono::nanoseconds read(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

std::chrono::nanoseconds suspended_time() {
  const auto running = read(CLOCK_MONOTONIC);
  return read(CLOCK_BOOTTIME) - running;  // clock_getres(2): the former stands still in a suspend
}

}  // namespace ceems::os
