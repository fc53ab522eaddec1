#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace ceems::api {

/// Bounds how many long answers are streamed at once. Each holds a connection to the database for
/// as long as its client reads, and there must be some left for others
/// (store::DatabaseOptions::max_listings). Safe for concurrent use.
class StreamSlots {
 public:
  static constexpr std::size_t kMaxStreams = 10;
  static constexpr std::size_t kMaxStreamsOfUser = 6;

  /// The right to one stream, which its destructor gives back. May outlive the slots.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&&) noexcept = default;
    Slot& operator=(Slot&& other) noexcept {
      std::swap(held_, other.held_);
      return *this;
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() = default;

   private:
    friend class StreamSlots;
    explicit Slot(std::shared_ptr<void> held) : held_(std::move(held)) {}
    std::shared_ptr<void> held_;
  };

  /// Nothing if the user, or all users together, have as many streams as they may.
  std::optional<Slot> take(const std::string& user);

 private:
  struct Counts {
    Mutex mutex;
    std::size_t all CEEMS_GUARDED_BY(mutex) = 0;
    std::map<std::string, std::size_t> of_user CEEMS_GUARDED_BY(mutex);
  };
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace ceems::api
