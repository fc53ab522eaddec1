#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace ceems::net {

/// Bounds the bytes that requests occupy from their arrival to the end of their answers, for one
/// server or for several that share it. Thread-safe.
class RequestMemory {
 public:
  explicit RequestMemory(std::size_t limit) : limit_(limit) {}

  /// What one request occupies; nothing at first, and nothing again after its end. One thread.
  class Share {
   public:
    explicit Share(RequestMemory& memory) : memory_(&memory) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { memory_->add(bytes_, 0); }

    /// False, with the old size, if all shares together would exceed the limit.
    [[nodiscard]] bool resize(std::size_t bytes) {
      if (!memory_->add(bytes_, bytes)) {
        return false;
      }
      bytes_ = bytes;
      return true;
    }

   private:
    RequestMemory* memory_;
    std::size_t bytes_ = 0;
  };

  /// True once after much was in use (kBurst) and nearly all of it was given back. The allocator
  /// keeps such memory unless it is asked to return it to the system.
  [[nodiscard]] bool burst_is_over();
  [[nodiscard]] std::size_t used() const { return used_; }

  static constexpr std::size_t kBurst = std::size_t{8} << 20U;

 private:
  bool add(std::size_t before, std::size_t after);

  const std::size_t limit_;
  std::atomic<std::size_t> used_ = 0;
  std::atomic<bool> burst_ = false;
};

}  // namespace ceems::net
