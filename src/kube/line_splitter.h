#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace ceems::kube {

/// Splits a stream into lines, no matter how it is divided into parts. A line longer than `limit`
/// bytes is skipped and counted, so that a peer cannot fill the memory. Not thread-safe.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t limit) : limit_(limit) {}

  /// Calls `take(std::string_view) -> Result<>` for every line that is now complete, without its
  /// line end; skips empty lines. Stops at the first error and returns it.
  template <typename Take>
  Result<> feed(std::string_view part, const Take& take) {
    while (!part.empty()) {
      const std::size_t end = part.find('\n');
      const bool complete = end != std::string_view::npos;
      add(part.substr(0, end));
      part.remove_prefix(complete ? end + 1 : part.size());
      if (!complete) {
        break;
      }
      const std::string line = std::exchange(line_, {});
      if (!std::exchange(skipping_, false) && !line.empty()) {
        CEEMS_TRY(take(std::string_view(line)));
      }
    }
    return {};
  }

  /// The number of lines that were too long.
  [[nodiscard]] std::size_t skipped() const { return skipped_; }

 private:
  void add(std::string_view text) {
    if (skipping_) {
      return;
    }
    if (line_.size() + text.size() > limit_) {
      skipping_ = true;
      ++skipped_;
      line_ = {};
      return;
    }
    line_ += text;
  }

  std::size_t limit_;
  std::string line_;
  bool skipping_ = false;
  std::size_t skipped_ = 0;
};

}  // namespace ceems::kube
