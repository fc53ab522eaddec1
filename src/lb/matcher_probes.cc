#include "lb/matcher_probes.h"

#include <utility>

namespace ceems::lb {

MatcherProbes::MatcherProbes(Targets targets, std::chrono::milliseconds interval)
    : targets_(std::move(targets)),
      interval_(interval),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

MatcherProbes::~MatcherProbes() = default;

void MatcherProbes::check_now() {
  const MutexLock lock(mutex_);
  due_ = true;
  due_changed_.notify_all();
}

void MatcherProbes::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      MutexLock lock(mutex_);
      due_changed_.wait_for(lock, stop, interval_, [&] CEEMS_REQUIRES(mutex_) { return due_; });
      due_ = false;
    }
    ask_all(stop);
  }
}

void MatcherProbes::ask_all(const std::stop_token& stop) const {
  for (const auto& [type, backends] : targets_()) {
    for (const auto& [cluster, pool] : backends->pools()) {
      for (const Backend& backend : pool.backends()) {
        for (const auto method : MatcherSupport::methods(type == gate::BackendType::kTsdb)) {
          if (!stop.stop_requested() && backend.upstream->alive()) {
            backend.matchers->renew(method);
          }
        }
      }
    }
  }
}

}  // namespace ceems::lb
