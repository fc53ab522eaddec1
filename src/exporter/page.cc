#include "exporter/page.h"

namespace ceems::exporter {
namespace {

/// Clears the flag and wakes the next one, also when a collector throws.
class Turn {
 public:
  Turn(std::mutex& mutex, std::condition_variable& idle, bool& busy)
      : mutex_(mutex), idle_(idle), busy_(busy) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    {
      const std::scoped_lock lock(mutex_);
      busy_ = false;
    }
    idle_.notify_one();
  }

 private:
  std::mutex& mutex_;
  std::condition_variable& idle_;
  bool& busy_;
};

}  // namespace

Result<> MetricsPage::get(metrics::Exposition exposition,
                          Clock::SteadyTime deadline,
                          std::string& out) {
  const auto asked = clock_.steady_now();
  {
    std::unique_lock lock(mutex_);
    if (!idle_.wait_for(lock, deadline - asked, [this] { return !busy_; })) {
      return fail(ErrorCode::kTimeout, "a scrape under way did not end in time");
    }
    busy_ = true;
  }
  const Turn turn(mutex_, idle_, busy_);
  if (!any_ || made_ < asked) {
    made_ = clock_.steady_now();
    any_ = true;
    sink_.clear();
    scraper_.run(sink_, deadline);
    if (self_.full()) {
      scraper_.add_ages(sink_);
      scraper_.add_hints(sink_);
    }
    self_.count_gathering_errors(sink_.dropped());
    self_.add(sink_);
  }
  sink_.render(exposition, out);
  return {};
}

}  // namespace ceems::exporter
