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
  if (turns_.empty()) {
    return nullptr;
  }
  const auto lane = turns_.begin();
  Job job = std::move(lane->jobs.begin()->second);
  lane->jobs.erase(lane->jobs.begin());
  if (lane->jobs.empty()) {
    erase(lane);
  } else {
    turns_.splice(turns_.end(), turns_, lane);
  }
  return job;
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
