#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/source/source_age.h"

namespace ceems::exporter {

struct SlowSourceOptions {
  std::string collector;  ///< for the log
  std::string source;     ///< what is read, e.g. "ipmi"; for the log and the age on the page
  /// Time between the starts of two reads.
  std::chrono::milliseconds period{5000};
  /// Values older than this are not served.
  std::chrono::milliseconds max_age{std::chrono::minutes(5)};
  /// A scrape requests a new value and waits at most this long for it (0: it never waits).
  std::chrono::milliseconds patience{20};
  /// A read that began less than this ago is recent enough for a scrape. This limits how often
  /// scrapes cause reads.
  std::chrono::milliseconds fresh_enough{0};
  /// wait_first() waits at most this long after start(), so that a slow source does not delay the
  /// first page any longer.
  std::chrono::milliseconds first_wait{2000};
};

/// A value that takes long to read (BMC, vendor tool, web service) and is therefore read in a
/// separate thread. Scrapes get the last good value and its age, whatever the source does. The log
/// has a line when failures begin and one when they end.
///
/// value() is safe from any thread. Call start() once, after privileges were dropped. The
/// destructor requests a stop of the read in progress through its stop_token and joins the thread.
/// Ages are measured with the given clock, so that tests can change them; waiting is in real time.
template <class T>
class SlowSource {
 public:
  /// Called by the thread only. Must end soon after a stop is requested.
  using Read = std::function<Result<T>(std::stop_token)>;

  struct Value {
    T value;
    Clock::SteadyTime read;  ///< when its read ended
  };

  SlowSource(SlowSourceOptions options, const Clock& clock, Read read)
      : options_(std::move(options)), clock_(clock), read_(std::move(read)) {}
  SlowSource(const SlowSource&) = delete;
  SlowSource& operator=(const SlowSource&) = delete;
  ~SlowSource() = default;

  /// Starts the thread without waiting for it.
  void start() {
    started_ = Steady::now();
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  /// Waits for the end of the first read, so that the first page has its value. All sources are
  /// started before the first wait, and they share the deadline, so together they delay the start
  /// no longer than one.
  void wait_first(std::chrono::steady_clock::time_point deadline) {
    if (thread_.joinable()) {
      MutexLock lock(mutex_);
      done_.wait_until(lock, std::min(deadline, started_ + options_.first_wait),
                       [this]() CEEMS_REQUIRES(mutex_) { return reads_ > 0; });
    }
  }

  /// The last good value, unless it is too old. First requests a new read and waits `patience` for
  /// it, so that quick sources are up to date at each scrape.
  std::optional<Value> value() {
    MutexLock lock(mutex_);
    const bool fresh = reads_ > 0 && Steady::now() - begin_ < options_.fresh_enough;
    if (options_.patience.count() > 0 && thread_.joinable() && !slow_ && !fresh) {
      if (!reading_) {  // a read in progress will do
        wanted_ = true;
        wake_.notify_one();
      }
      const auto before = reads_;
      slow_ = !done_.wait_for(lock, options_.patience,
                              [&]() CEEMS_REQUIRES(mutex_) { return reads_ > before; });
    }
    if (!last_ || clock_.steady_now() - last_->read > options_.max_age) {
      return std::nullopt;
    }
    return last_;
  }

  /// Error of the last read; empty if it was good or none has ended. Below, the time of the last
  /// good read.
  [[nodiscard]] std::string last_error() const {
    const MutexLock lock(mutex_);
    return error_;
  }
  [[nodiscard]] std::optional<Clock::SteadyTime> last_good() const {
    const MutexLock lock(mutex_);
    return last_ ? std::optional(last_->read) : std::nullopt;
  }
  /// Age of the last good value; empty before there is one.
  [[nodiscard]] std::vector<SourceAge> ages() const {
    const auto read = last_good();
    return read ? std::vector<SourceAge>{{options_.source, clock_.steady_now() - *read}}
                : std::vector<SourceAge>{};
  }

 private:
  using Steady = std::chrono::steady_clock;

  void run(const std::stop_token& stop) {
    MutexLock lock(mutex_);
    while (!stop.stop_requested()) {
      begin_ = Steady::now();
      reading_ = true;
      wanted_ = false;
      lock.unlock();
      Result<T> result = read_once(stop);
      if (stop.stop_requested()) {
        return;
      }
      report(result);
      lock.lock();
      take(std::move(result));
      const auto end = Steady::now();
      slow_ = end - begin_ >= options_.patience;
      reading_ = false;
      ++reads_;
      done_.notify_all();
      // A source slower than the period gets a pause, too.
      const auto next = std::max(begin_ + options_.period, end + options_.period / 5);
      wake_.wait_until(lock, stop, next, [this]() CEEMS_REQUIRES(mutex_) { return wanted_; });
    }
  }

  Result<T> read_once(const std::stop_token& stop) {
    try {
      return read_(stop);
    } catch (const std::exception& error) {
      return fail(ErrorCode::kInternal, "exception: {}", error.what());
    } catch (...) {
      return fail(ErrorCode::kInternal, "exception of an unknown kind");
    }
  }

  /// Logs one line when failures begin and one when they end, whatever the messages in between are.
  /// Called without the lock, because a log that hangs must not delay a scrape.
  void report(const Result<T>& result) {
    if (!result && !failing_) {
      log::error("reading failed; serving the last value until it is too old",
                 {{"collector", options_.collector},
                  {"source", options_.source},
                  {"err", result.error().message}});
    } else if (result && failing_) {
      log::info("source answers again",
                {{"collector", options_.collector}, {"source", options_.source}});
    }
    failing_ = !result;
  }

  void take(Result<T> result) CEEMS_REQUIRES(mutex_) {
    if (result) {
      error_.clear();
      last_ = Value{*std::move(result), clock_.steady_now()};
    } else {
      error_ = result.error().message.empty() ? "failed" : std::move(result).error().message;
    }
  }

  const SlowSourceOptions options_;
  const Clock& clock_;
  const Read read_;
  bool failing_ = false;  // used by the thread only
  Steady::time_point started_{};

  mutable Mutex mutex_;
  Condition done_;
  Condition wake_;
  std::optional<Value> last_ CEEMS_GUARDED_BY(mutex_);
  std::string error_ CEEMS_GUARDED_BY(mutex_);
  unsigned long reads_ CEEMS_GUARDED_BY(mutex_) = 0;     // completed reads, good or bad
  Steady::time_point begin_ CEEMS_GUARDED_BY(mutex_){};  // of the last read
  bool reading_ CEEMS_GUARDED_BY(mutex_) = false;
  bool wanted_ CEEMS_GUARDED_BY(mutex_) = false;  // a scrape wants a read before the next period
  bool slow_ CEEMS_GUARDED_BY(mutex_) = false;    // the last read took longer than `patience`
  std::jthread thread_;  // the last member, so that it is joined before the others are destroyed
};

}  // namespace ceems::exporter
