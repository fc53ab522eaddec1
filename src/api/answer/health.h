#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>

#include "api/answer/request_metrics.h"
#include "base/mutex.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

/// Answers /health after asking the database, which may hang. A thread of its own asks, one
/// question at a time, and requests that come meanwhile wait for the same one. Safe for concurrent
/// use.
class HealthProbe {
 public:
  /// `reader` and `metrics` must outlive the probe. No answer comes later than `limit` after its
  /// question.
  HealthProbe(store::Reader& reader, RequestMetrics& metrics, std::chrono::milliseconds limit);

  /// 200, or 503 if the database fails or has not answered in time.
  void answer(net::Response& response);

 private:
  void ask(const std::stop_token& stop);

  store::Reader& reader_;
  RequestMetrics& metrics_;
  const std::chrono::milliseconds limit_;
  Mutex mutex_;
  Condition changed_;
  std::uint64_t asked_ CEEMS_GUARDED_BY(mutex_) = 0;  ///< questions
  std::uint64_t answered_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point asked_at_ CEEMS_GUARDED_BY(mutex_);  ///< the last one
  bool good_ CEEMS_GUARDED_BY(mutex_) = false;                               ///< the last answer
  std::jthread thread_;  // last, because it uses the other members
};

}  // namespace ceems::api
