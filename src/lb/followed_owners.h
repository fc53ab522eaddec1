#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "gate/owners.h"

namespace ceems::lb {

/// Owners from a file that may be replaced or removed while it is open: a program would go on
/// reading the old one. A thread compares the path with the open file.
class FollowedOwners : public gate::Owners {
 public:
  /// Opens the file. Called at once, and on the thread whenever another file is at the path.
  using Open = std::function<Result<std::shared_ptr<gate::Owners>>()>;

  /// Passes on errors of `open`. From then on, all questions fail (kUnavailable) while the file is
  /// missing or cannot be opened; cached answers are not used either. Each change is logged.
  /// `around` wraps accesses to the file, to raise a privilege meanwhile.
  static Result<std::unique_ptr<FollowedOwners>> create(
      std::string file,
      Open open,
      std::function<void(const std::function<void()>&)> around,
      std::chrono::milliseconds interval);
};

}  // namespace ceems::lb
