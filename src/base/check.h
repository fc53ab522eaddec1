#pragma once

namespace ceems {

/// Logs and aborts. Called by CEEMS_CHECK only.
[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace ceems

/// Aborts when an invariant of our own code does not hold. Never use it to check input.
#define CEEMS_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) {                                      \
      ::ceems::check_failed(#condition, __FILE__, __LINE__); \
    }                                                        \
  } while (false)
