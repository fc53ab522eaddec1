#pragma once

#include <cstddef>

namespace ceems::metrics {

/// The number of calls of operator new in this program so far. Linked into metrics_test only.
std::size_t allocation_count();

}  // namespace ceems::metrics
