#include "tool/validate/kernels.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace ceems::tool::validate {
namespace {

constexpr std::size_t kMatrix = 48;  // three of them take 54 KB
constexpr int kProducts = 40;        // a block
// Four times the share of a core in the last level of large caches, in doubles: 48 MiB.
constexpr std::size_t kBuffer = std::size_t{48} * 1024 * 1024 / sizeof(double);
constexpr std::size_t kCopies = 1;
constexpr int kChain = 2'000'000;

}  // namespace

Kernel::Kernel(LoadClass load) : load_(load) {
  const std::size_t size = load == LoadClass::kMemory    ? kBuffer
                           : load == LoadClass::kCompute ? kMatrix * kMatrix
                                                         : 0;
  left_.assign(size, 1.25);
  right_.assign(size, 0.75);
  out_.assign(load == LoadClass::kCompute ? size : 0, 0);
}

double Kernel::block() {
  switch (load_) {
    case LoadClass::kScalar:
      return scalar();
    case LoadClass::kMemory:
      return memory();
    case LoadClass::kIdle:
    case LoadClass::kCompute:
    case LoadClass::kMixed:
      break;
  }
  return compute();
}

double Kernel::compute() {
  const double* right = right_.data();
  for (int product = 0; product < kProducts; ++product) {
    for (std::size_t i = 0; i < kMatrix; ++i) {
      double* row = &out_[i * kMatrix];
      for (std::size_t k = 0; k < kMatrix; ++k) {
        const double factor = left_[i * kMatrix + k];
        for (std::size_t j = 0; j < kMatrix; ++j) {
          row[j] = row[j] * 0.5 + factor * right[k * kMatrix + j];
        }
      }
    }
    left_[0] = out_[1];
  }
  return out_[kMatrix];
}

double Kernel::scalar() {
  std::uint64_t odd = 0;
  for (int i = 0; i < kChain; ++i) {  // xorshift (Marsaglia 2003), whose branch cannot be predicted
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    odd = (state_ & 1U) != 0 ? odd * 3 + 1 : odd / 2 + state_;
  }
  return static_cast<double>(odd);
}

double Kernel::memory() {
  for (std::size_t i = 0; i < kCopies; ++i) {
    std::memcpy(left_.data(), right_.data(), right_.size() * sizeof(double));
    std::swap(left_, right_);
    left_[0] = right_[1];
  }
  return right_[kBuffer / 2] + left_[0];
}

}  // namespace ceems::tool::validate
