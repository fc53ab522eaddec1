#pragma once

namespace ceems {

/// Logs and aborts. Called by CEEMS_CHECK only.
[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace ceems

/// A broken invariant of our own code; never for input.
#define CEEMS_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) {                                      \
      ::ceems::check_failed(#condition, __FILE__, __LINE__); \
    }                                                        \
  } while (false)
