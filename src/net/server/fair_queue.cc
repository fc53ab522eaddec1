#include "net/server/fair_queue.h"

#include <utility>

namespace ceems::net {

FairQueue::Ticket FairQueue::add(std::string key, Job job) {
  const MutexLock lock(mutex_);
  auto found = lanes_.find(key);
  if (found == lanes_.end()) {
    turns_.push_back({.key = key, .jobs = {}});
    found = lanes_.emplace(key, std::prev(turns_.end())).first;
  }
  found->second->jobs.emplace(++last_, std::move(job));
  return {.key = std::move(key), .number = last_};
}

FairQueue::Job FairQueue::take() {
  const MutexLock lock(mutex_);
  const auto may_run = [this](const Lane& lane) CEEMS_REQUIRES(mutex_) {
    const auto found = running_.find(lane.key);
    return limit_ == 0 || found == running_.end() || found->second < limit_;
  };
  auto lane = turns_.begin();
  while (lane != turns_.end() && !may_run(*lane)) {
    ++lane;
  }
  if (lane == turns_.end()) {
    return nullptr;
  }
  Job job = std::move(lane->jobs.begin()->second);
  if (limit_ > 0) {
    ++running_[lane->key];
    job = [this, key = lane->key, inner = std::move(job)](Turn turn) mutable {
      inner(turn);
      ended(key);
    };
  }
  lane->jobs.erase(lane->jobs.begin());
  if (lane->jobs.empty()) {
    erase(lane);
  } else {
    turns_.splice(turns_.end(), turns_, lane);
  }
  return job;
}

void FairQueue::ended(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto found = running_.find(key);
  if (found != running_.end() && --found->second == 0) {
    running_.erase(found);
  }
}

FairQueue::Job FairQueue::remove(const Ticket& ticket) {
  const MutexLock lock(mutex_);
  const auto found = lanes_.find(ticket.key);
  if (found == lanes_.end()) {
    return nullptr;
  }
  const auto lane = found->second;
  auto node = lane->jobs.extract(ticket.number);
  if (node.empty()) {
    return nullptr;
  }
  if (lane->jobs.empty()) {
    erase(lane);
  }
  return std::move(node.mapped());
}

void FairQueue::erase(Lanes::iterator lane) {
  lanes_.erase(lane->key);
  turns_.erase(lane);
}

}  // namespace ceems::net
