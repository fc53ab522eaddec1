#pragma once

#include <atomic>
#include <cstdint>

namespace ceems::store {

/// What Reader::generation() and Reader::usage_generation() return. Safe for concurrent use.
struct Generations {
  std::atomic<std::uint64_t> all = 0;
  std::atomic<std::uint64_t> usage = 0;

  /// Call it after each commit. `leaves_usage`: no query of usage depends on it.
  void committed(bool leaves_usage = false) {
    all.fetch_add(1);
    if (!leaves_usage) {
      usage.fetch_add(1);
    }
  }
};

}  // namespace ceems::store
