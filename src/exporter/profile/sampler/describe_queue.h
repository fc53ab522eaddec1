#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>

#include "exporter/profile/sampler/sample.h"

namespace ceems::exporter::profile {

/// Processes whose code the sampling program does not (fully) know. Describing one takes longer the
/// more mappings and binaries a job makes, and a job can change them all the time. Therefore
/// describing takes a tenth of a CPU at most, those that were described the longest ago come first,
/// and each has its turn once a second at most. Not thread-safe.
class DescribeQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::milliseconds kTurn{50};     ///< begins no other one after it
  static constexpr std::chrono::milliseconds kAgain{1000};  ///< between two turns of a process
  static constexpr int kPauses = 9;                         ///< times as long as it took

  explicit DescribeQueue(std::function<Time()> now = std::chrono::steady_clock::now);

  /// The process runs `image` now.
  void add(pid_t pid, const stack_image& image) { waiting_[pid] = image; }
  /// Calls `describe` for those whose turn it is.
  void run(const std::function<void(pid_t, const stack_image&)>& describe);

  [[nodiscard]] std::size_t size() const { return waiting_.size(); }

 private:
  std::function<Time()> now_;
  std::map<pid_t, stack_image> waiting_;
  std::map<pid_t, Time> described_;  ///< less than kAgain ago, and others
  Time resume_{};
};

}  // namespace ceems::exporter::profile
