#include "exporter/profile/sampler/describe_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ceems::exporter::profile {

DescribeQueue::DescribeQueue(std::function<Time()> now) : now_(std::move(now)) {}

void DescribeQueue::run(const std::function<void(pid_t, const stack_image&)>& describe) {
  const Time begin = now_();
  if (waiting_.empty() || begin < resume_) {
    return;
  }
  std::vector<std::pair<Time, pid_t>> order;
  for (const auto& [pid, image] : waiting_) {
    const auto before = described_.find(pid);
    if (before == described_.end()) {
      order.emplace_back(Time{}, pid);
    } else if (begin - before->second >= kAgain) {
      order.emplace_back(before->second, pid);
    }
  }
  std::ranges::sort(order);
  Time end = begin;
  for (const auto& [before, pid] : order) {
    describe(pid, waiting_[pid]);
    waiting_.erase(pid);
    end = now_();
    described_[pid] = end;
    if (end - begin >= kTurn) {
      break;
    }
  }
  resume_ = end + kPauses * (end - begin);
  std::erase_if(described_, [&](const auto& known) {
    return end - known.second >= 2 * kAgain && !waiting_.contains(known.first);
  });
}

}  // namespace ceems::exporter::profile
