#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "metrics/registry.h"

namespace ceems::api {

/// Kinds of database queries that are timed.
enum class Query : std::uint8_t {
  kUnits,
  kUsage,
  kCurrentUsage,
  kUsers,
  kProjects,
  kClusters,
  kStats,
  kVerify,
  kIdentity,
  kPing,
};
inline constexpr std::size_t kQueryCount = 10;

/// Metrics of the requests and database queries of the API server (docs/api/metrics.md). Safe for
/// concurrent use.
class RequestMetrics {
 public:
  /// `routes` are the values of the label `route`. `registry` and `clock` must outlive this.
  RequestMetrics(metrics::Registry& registry,
                 const std::vector<std::string>& routes,
                 const Clock& clock);

  void count_limited() { limited_.add(); }
  void count_cache_lookup(bool hit) { (hit ? cache_hits_ : cache_misses_).add(); }

 private:
  friend class RequestTimer;
  friend class QueryTimer;
  struct Route {
    std::array<metrics::Counter*, 4> answers;  ///< 2xx to 5xx; a 1xx is never an answer
    metrics::Histogram* seconds;
  };
  struct QueryKind {
    metrics::Counter* rows = nullptr;
    metrics::Counter* failures = nullptr;
    metrics::Histogram* seconds = nullptr;
    std::atomic<bool> failing{false};  ///< the last query failed
  };

  const Clock& clock_;
  std::vector<Route> routes_;
  std::array<QueryKind, kQueryCount> queries_;
  metrics::Gauge& in_flight_;
  metrics::Counter& limited_;
  metrics::Counter& cache_hits_;
  metrics::Counter& cache_misses_;
};

/// Times one request from its routing to the last piece of its answer, and counts it in the
/// destructor.
class RequestTimer {
 public:
  /// `route` is an index into the routes. `metrics` must outlive the timer.
  RequestTimer(RequestMetrics& metrics, std::size_t route);
  RequestTimer(const RequestTimer&) = delete;
  RequestTimer& operator=(const RequestTimer&) = delete;
  ~RequestTimer();
  /// The status is 500 until this is called.
  void set_status(int status) { status_ = status; }

 private:
  RequestMetrics& metrics_;
  const std::size_t route_;
  const Clock::SteadyTime start_;
  int status_ = 500;
};

/// Times one query, which may be spread over many rows, and counts it in the destructor. Logs one
/// line when queries of its kind begin to fail and one when they succeed again. Used by one thread
/// at a time.
class QueryTimer {
 public:
  /// `metrics` must outlive the timer.
  QueryTimer(RequestMetrics& metrics, Query query) : metrics_(&metrics), query_(query) {}
  QueryTimer(QueryTimer&& other) noexcept
      : metrics_(std::exchange(other.metrics_, nullptr)),
        query_(other.query_),
        spent_(other.spent_),
        rows_(other.rows_),
        failed_(other.failed_),
        error_(std::move(other.error_)) {}
  QueryTimer& operator=(QueryTimer&&) = delete;
  QueryTimer(const QueryTimer&) = delete;
  QueryTimer& operator=(const QueryTimer&) = delete;
  ~QueryTimer();

  /// Runs a part of the query, a function that returns a Result, and returns its result.
  template <typename Part>
  auto run(Part&& part) {
    const auto start = metrics_->clock_.steady_now();
    auto result = std::forward<Part>(part)();
    spent_ += metrics_->clock_.steady_now() - start;
    if (!result) {
      failed_ = true;
      error_ = result.error().message;
    }
    return result;
  }
  void count_row() { ++rows_; }

 private:
  RequestMetrics* metrics_;  ///< null after a move
  Query query_;
  std::chrono::nanoseconds spent_{0};
  std::uint64_t rows_ = 0;
  bool failed_ = false;
  std::string error_;
};

}  // namespace ceems::api
