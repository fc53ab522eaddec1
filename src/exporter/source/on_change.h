#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/source/slow_source.h"

namespace ceems::exporter {

struct OnChangeTimes {
  /// Age at which the answer is fetched again for the same names.
  std::chrono::milliseconds refresh = std::chrono::minutes(15);
  /// Pause after an error before it is fetched again for the same names.
  std::chrono::milliseconds pause_after_error{5000};
  /// How long value() waits for the answer for new names, and how often the thread checks for
  /// requests.
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds period{1000};
  std::chrono::milliseconds first_wait{1500};  ///< how long the start waits for the first answer
};

/// What a server or a command says about things that have names, such as the jobs of a node. A
/// thread fetches it when the names have changed, and every 15 minutes; the last answer never
/// becomes outdated.
///
/// value() and waiting() are for one caller at a time. Call start() once, after privileges were
/// dropped.
template <class T>
class OnChange {
 public:
  /// Called by the thread only. Must end soon after the token is stopped.
  using Fetch = std::function<Result<T>(const std::stop_token&)>;

  /// `collector` and `source` are for the log. `clock` must outlive it.
  OnChange(std::string collector,
           std::string source,
           const OnChangeTimes& times,
           const Clock& clock,
           Fetch fetch)
      : times_(times),
        clock_(clock),
        fetch_(std::move(fetch)),
        source_({.collector = std::move(collector),
                 .source = std::move(source),
                 .period = times.period,
                 .max_age = std::chrono::hours(24 * 365),
                 .patience = times.patience,
                 .first_wait = times.first_wait},
                clock_,
                [this](const std::stop_token& stop) { return read(stop); }) {}

  void start() { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) { source_.wait_first(deadline); }

  /// The last answer, which is requested again if it is not the one for these names, or old. Null
  /// before the first one. `names` are sorted.
  std::shared_ptr<const T> value(std::vector<std::string> names) {
    const bool old = answer_ != nullptr && clock_.steady_now() - refreshed_ >= times_.refresh;
    if (names != names_ || (old && !waiting_)) {
      names_ = std::move(names);
      waiting_ = true;
      ++requested_;
    }
    if (waiting_) {
      if (const auto value = source_.value()) {
        answer_ = value->value.answer;
        if (value->value.request == requested_) {
          waiting_ = false;
          refreshed_ = clock_.steady_now();
        }
      }
    }
    return answer_;
  }
  /// Whether value() has not returned the answer for its names yet.
  [[nodiscard]] bool waiting() const { return waiting_; }
  /// Why the last fetch failed; empty if it did not.
  [[nodiscard]] std::string last_error() const { return source_.last_error(); }

 private:
  struct Fetched {
    std::uint64_t request = 0;  // the newest request when fetching began
    std::shared_ptr<const T> answer;
  };

  // Runs in the thread. Fetches if there was a request since the last time.
  Result<Fetched> read(const std::stop_token& stop) {
    const std::uint64_t request = requested_;
    if (done_.request == request) {
      return done_;
    }
    // Requests for the same names are repeated only after a pause, and for other names at once.
    if (error_ && failed_request_ == request && clock_.steady_now() < retry_at_) {
      return fail(*error_);
    }
    auto fetched = fetch_(stop);
    if (!fetched) {
      error_ = fetched.error();
      failed_request_ = request;
      retry_at_ = clock_.steady_now() + times_.pause_after_error;
      return fail(std::move(fetched).error());
    }
    error_.reset();
    done_ = {.request = request, .answer = std::make_shared<const T>(*std::move(fetched))};
    return done_;
  }

  const OnChangeTimes times_;
  const Clock& clock_;
  const Fetch fetch_;
  std::atomic<std::uint64_t> requested_ = 1;

  // Used by the thread only.
  Fetched done_;
  std::optional<Error> error_;
  std::uint64_t failed_request_ = 0;
  Clock::SteadyTime retry_at_{};

  // Used by the caller of value() only.
  std::vector<std::string> names_;  // of the newest request
  bool waiting_ = true;             // for the answer to it
  Clock::SteadyTime refreshed_{};
  std::shared_ptr<const T> answer_;

  SlowSource<Fetched> source_;  // the last member: its thread uses all of the above
};

}  // namespace ceems::exporter
