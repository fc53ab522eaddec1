#pragma once

#include <cstdint>
#include <vector>

#include "tool/validate/record.h"

namespace ceems::tool::validate {

/// The work of one thread of a load, in blocks of milliseconds. Each thread has its own. Not
/// thread-safe.
///
/// - compute: products of matrices of doubles that stay in the cache of the core;
/// - scalar: a chain of integer operations and branches, each waiting for the one before;
/// - memory-bound: copies between two buffers that are larger than the caches, as in STREAM.
class Kernel {
 public:
  explicit Kernel(LoadClass load);
  /// Does one block. The result depends on all of it, so that a compiler cannot leave it out.
  double block();

 private:
  double compute();
  double scalar();
  double memory();

  LoadClass load_;
  std::vector<double> left_, right_, out_;
  std::uint64_t state_ = 1;
};

}  // namespace ceems::tool::validate
