#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/recent_map.h"
#include "gate/request.h"

namespace ceems::lb {

/// Remembers the texts at which servers closed the connection without an answer: a query may crash
/// a server each time it is sent. Thread-safe.
class BrokenTexts {
 public:
  /// After this many, the text is refused to its user for kRefusedFor.
  static constexpr std::size_t kMaxBroken = 2;
  static constexpr std::chrono::minutes kRefusedFor{5};

  /// `clock` must outlive the object.
  explicit BrokenTexts(const Clock& clock = real_clock()) : clock_(&clock) {}

  /// `servers` closed without an answer to this text.
  void note(std::string_view key, std::size_t servers);
  [[nodiscard]] bool refuses(std::string_view key);

 private:
  struct Entry {
    std::size_t broken = 0;
    Clock::SteadyTime last;
  };
  static constexpr std::size_t kMaxTexts = 200;
  static constexpr std::size_t kMaxTextBytes = std::size_t{64} << 10U;

  const Clock* clock_;
  RecentMap<Entry> texts_{kMaxTexts, kMaxTextBytes};
};

/// The user, and the queries of the request or, without any, its path and body. Times and steps are
/// not part of it.
std::string broken_key(std::string_view user, const gate::ParsedRequest& request);

}  // namespace ceems::lb
