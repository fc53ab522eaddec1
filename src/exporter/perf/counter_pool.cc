#include "exporter/perf/counter_pool.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace ceems::exporter::perf {

Counter::Counter(Counter&& other) noexcept
    : pool_(other.pool_),
      handle_(std::exchange(other.handle_, -1)),
      event_(other.event_),
      last_(other.last_) {}

Counter& Counter::operator=(Counter&& other) noexcept {
  if (this != &other) {
    close();
    pool_ = other.pool_;
    handle_ = std::exchange(other.handle_, -1);
    event_ = other.event_;
    last_ = other.last_;
  }
  return *this;
}

void Counter::close() {
  if (handle_ >= 0) {
    pool_->kernel_.close(std::exchange(handle_, -1));
    ++pool_->left_;
  }
}

void Counter::add_to(Totals& totals) {
  if (const auto now = pool_->kernel_.read(handle_)) {
    totals[event_] += growth(last_, *now);
    last_ = *now;
  }
}

Result<> CounterPool::open(const Target& target, std::vector<Counter>& counters) {
  const auto before = static_cast<std::ptrdiff_t>(counters.size());
  const auto give_up = [&](Error error) -> Result<> {
    counters.erase(counters.begin() + before, counters.end());
    return fail(std::move(error));
  };
  Error refused{ErrorCode::kNotFound, "this machine has none of the events"};
  for (const std::size_t event : events_) {
    if (unsupported_[event]) {
      continue;
    }
    if (left_ == 0) {
      return give_up({ErrorCode::kUnavailable, "the limit of open counters is reached"});
    }
    auto handle = kernel_.open(all_events()[event], target, exclude_kernel_);
    if (handle) {
      --left_;
      counters.emplace_back(*this, *handle, event);
    } else if (handle.error().code == ErrorCode::kNotFound) {
      log_unsupported(event);
    } else if (handle.error().code == ErrorCode::kNoData ||
               handle.error().code == ErrorCode::kUnavailable) {
      return give_up(std::move(handle).error());
    } else {
      refused = std::move(handle).error();
    }
  }
  if (std::cmp_equal(counters.size(), before)) {
    return fail(std::move(refused));
  }
  return {};
}

void CounterPool::log_unsupported(std::size_t event) {
  unsupported_[event] = true;
  log::info("event is not supported by this machine",
            {{"collector", "perf"}, {"event", all_events()[event].profiler}});
}

std::size_t default_counter_limit() {
  constexpr rlim_t kMax = 65536;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) {
    return 0;
  }
  return static_cast<std::size_t>(std::min(files.rlim_cur / 8, kMax));
}

}  // namespace ceems::exporter::perf
