#pragma once

#include <cstdint>
#include <cstdlib>

namespace ceems::testing {

/// How many random histories a test tries: `usual`, times CEEMS_HISTORIES where that is set, as the
/// long tests do. Seeds count from 1, so the usual ones are always among them.
[[nodiscard]] inline std::uint64_t histories(std::uint64_t usual) {
  const char* times =
      std::getenv("CEEMS_HISTORIES");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const std::uint64_t factor = times == nullptr ? 1 : std::strtoull(times, nullptr, 10);
  return usual * (factor == 0 ? 1 : factor);
}

}  // namespace ceems::testing
