#include "exporter/unit/directory_use.h"

#include <algorithm>

namespace ceems::exporter {

void DirectoryUse::begin(std::optional<double> seconds) {
  growth_.reset();
  children_ = 0;
  missed_ = false;
  partial_ = false;
  if (seconds && known_ && *seconds >= last_) {
    growth_ = *seconds - last_;
  }
  moved_ = !growth_ || *growth_ > 0;
  known_ = seconds.has_value();
  last_ = seconds.value_or(0);
}

void DirectoryUse::begin_quiet() {
  begin(last_);
}

void DirectoryUse::add_lost(Lost lost) {
  if (lost_.size() < kMaxLost) {
    lost_.push_back(lost);
  }
}

void DirectoryUse::take_over(const DirectoryUse& child) {
  ended_ += child.ended_;
  for (const Lost& lost : child.lost_) {
    add_lost(lost);
  }
}

void DirectoryUse::end(bool usable,
                       const std::function<void(std::uint64_t ended, double seconds)>& give) {
  double rest = 0;
  if (growth_ && !partial_) {
    rest = std::max(0.0, *growth_ + carried_ - children_ - ended_);
  }
  double weights = 0;
  for (const Lost& lost : lost_) {
    weights += lost.unread_seconds;
  }
  if (usable && rest > 0 && weights > 0) {
    for (const Lost& lost : lost_) {
      const double share =
          std::min(rest * lost.unread_seconds / weights, lost.unread_seconds * lost.max_cpus);
      give(lost.ended, share);
    }
  }
  carried_ = missed_ ? rest : 0;
  if (!lost_.empty()) {
    carried_ = 0;
  }
  lost_.clear();
  ended_ = 0;
}

}  // namespace ceems::exporter
