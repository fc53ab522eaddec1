#include "lb/owner_breaker.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace ceems::lb {
namespace {

class InterruptibleOwners final : public gate::Owners {
 public:
  InterruptibleOwners(gate::Owners& owners, const Clock& clock, const BreakerTimes& times)
      : owners_(&owners), clock_(&clock), times_(times) {}

  Result<bool> is_admin(const std::string& user) override {
    return ask<bool>([&] { return owners_->is_admin(user); });
  }
  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const gate::UnitSet& units) override {
    return ask<bool>([&] { return owners_->may_see(user, cluster, units); });
  }
  Result<gate::UnitSet> units_of(const std::string& user,
                                 const std::string& cluster,
                                 const promql::TimeSpan& alive,
                                 std::size_t limit) override {
    return ask<gate::UnitSet>([&] { return owners_->units_of(user, cluster, alive, limit); });
  }
  Result<gate::SharedIds> shared_ids(const std::string& user,
                                     const std::string& cluster,
                                     const gate::UnitSet& units) override {
    return ask<gate::SharedIds>([&] { return owners_->shared_ids(user, cluster, units); });
  }

 private:
  template <typename Answer, typename Question>
  Result<Answer> ask(const Question& question) {
    if (!begin()) {
      return fail(ErrorCode::kUnavailable, "the source of owners does not answer; not asked again");
    }
    const auto start = clock_->steady_now();
    Result<Answer> answer = question();
    end(answer.has_value(), clock_->steady_now() - start);
    return answer;
  }

  /// Whether a question may be asked now.
  bool begin() CEEMS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (pause_.count() == 0) {
      return true;
    }
    return clock_->steady_now() >= until_ && !std::exchange(trying_, true);
  }

  void end(bool answered, Clock::SteadyTime::duration time) CEEMS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const bool paused = pause_.count() > 0;
    if (answered || (time < times_.slow && trying_)) {  // a quick failure: it does not hang
      pause_ = {};
      trying_ = false;
    } else if (time >= times_.slow && (trying_ || !paused)) {
      pause_ = paused ? std::min(2 * pause_, times_.max_pause) : times_.pause;
      until_ = clock_->steady_now() + pause_;
      trying_ = false;
      if (!paused) {
        log::warn("the source of owners hangs; not asking it for a while",
                  {{"pause_ms", pause_.count()}});
      }
    }
  }

  gate::Owners* owners_;
  const Clock* clock_;
  BreakerTimes times_;
  Mutex mutex_;
  std::chrono::milliseconds pause_ CEEMS_GUARDED_BY(mutex_){0};  ///< 0: everything is asked
  Clock::SteadyTime until_ CEEMS_GUARDED_BY(mutex_);
  bool trying_ CEEMS_GUARDED_BY(mutex_) = false;  ///< the one question after the pause is open
};

}  // namespace

std::unique_ptr<gate::Owners> interruptible_owners(gate::Owners& owners,
                                                   const Clock& clock,
                                                   const BreakerTimes& times) {
  return std::make_unique<InterruptibleOwners>(owners, clock, times);
}

}  // namespace ceems::lb
