// Replaces operator new of the whole test program. This is a separate file, because a compiler that
// inlines it into its callers reports a mismatch between new and free().
#include "metrics/counting_new_test_support.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> allocations;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size); memory != nullptr) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace ceems::metrics {
std::size_t allocation_count() {
  return allocations.load();
}
}  // namespace ceems::metrics
