#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace ceems::kube {

/// Cuts a stream into its lines, however it comes in parts. A line longer than `limit` is left out
/// and counted, so that no peer can fill the memory. Not thread-safe.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t limit) : limit_(limit) {}

  /// Hands every line that is complete now to `take(std::string_view) -> Result<>`, without its
  /// end; empty ones are left out. The first error stops it and is the result.
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
        if (auto taken = take(std::string_view(line)); !taken) {
          return taken;
        }
      }
    }
    return {};
  }

  /// Lines that were too long.
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
