#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/thread_annotations.h"
#include "metrics/histogram.h"
#include "metrics/process.h"
#include "metrics/sink.h"

namespace ceems::api {

/// Kinds of queries of the data base that are timed.
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

/// What the API server says about itself at /metrics; docs/api/metrics.md has the table. Safe for
/// concurrent use.
class Figures {
 public:
  /// Adds what others have to say; empty: nobody has.
  using Others = std::function<void(metrics::Sink&)>;

  /// `routes` are the values of the label `route`. `clock` outlives this.
  Figures(std::vector<std::string> routes, const Clock& clock, Others others);

  /// A request from its routing to the last piece of its answer; counted when it goes away.
  class Request {
   public:
    /// `route` is an index into the routes. `figures` outlives the request.
    Request(Figures& figures, std::size_t route);
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    ~Request();
    /// 500 until this is called.
    void set_status(int status) { status_ = status; }

   private:
    Figures& figures_;
    const std::size_t route_;
    const Clock::SteadyTime start_;
    int status_ = 500;
  };

  void count_limited() { limited_.fetch_add(1); }
  void count_cache(bool hit) { (hit ? cache_hits_ : cache_misses_).fetch_add(1); }

  /// Appends the page in the text format 0.0.4.
  void append_page(std::string& out);

 private:
  friend class QueryMeter;
  static constexpr std::size_t kClasses = 5;  // 1xx is never an answer

  struct OfRoute {
    std::array<std::atomic<std::uint64_t>, kClasses> answers{};
    metrics::Histogram seconds{metrics::Histogram::latencies()};
  };
  struct OfQuery {
    std::atomic<std::uint64_t> rows{0};
    std::atomic<std::uint64_t> failures{0};
    std::atomic<bool> failing{false};  ///< the last one did
    metrics::Histogram seconds{metrics::Histogram::latencies()};
  };
  void add_counters(metrics::Sink& sink) const;
  void append_histograms(std::string& out) const;

  const std::vector<std::string> routes_;
  const Clock& clock_;
  const Others others_;
  std::vector<OfRoute> of_route_;
  std::array<OfQuery, kQueryCount> of_query_;
  std::atomic<long> in_flight_{0};
  std::atomic<std::uint64_t> limited_{0};
  std::atomic<std::uint64_t> cache_hits_{0};
  std::atomic<std::uint64_t> cache_misses_{0};

  std::mutex page_mutex_;
  metrics::Sink sink_ CEEMS_GUARDED_BY(page_mutex_);
  metrics::ProcessMetrics process_ CEEMS_GUARDED_BY(page_mutex_);
};

/// The time one query takes, which may be spread over many rows; told to Figures when this goes
/// away. Logs one line when queries of its kind begin to fail and one when they succeed again. Used
/// by one thread at a time.
class QueryMeter {
 public:
  /// `figures` outlives the meter.
  QueryMeter(Figures& figures, Query query) : figures_(&figures), query_(query) {}
  QueryMeter(QueryMeter&& other) noexcept
      : figures_(std::exchange(other.figures_, nullptr)),
        query_(other.query_),
        spent_(other.spent_),
        rows_(other.rows_),
        failed_(other.failed_),
        error_(std::move(other.error_)) {}
  QueryMeter& operator=(QueryMeter&&) = delete;
  QueryMeter(const QueryMeter&) = delete;
  QueryMeter& operator=(const QueryMeter&) = delete;
  ~QueryMeter();

  /// Runs a part of the query, a function that gives a Result, and gives what it gives.
  template <typename Part>
  auto run(Part&& part) {
    const auto start = figures_->clock_.steady_now();
    auto result = std::forward<Part>(part)();
    spent_ += figures_->clock_.steady_now() - start;
    if (!result) {
      failed_ = true;
      error_ = result.error().message;
    }
    return result;
  }
  void count_row() { ++rows_; }

 private:
  Figures* figures_;
  Query query_;
  std::chrono::nanoseconds spent_{0};
  std::uint64_t rows_ = 0;
  bool failed_ = false;
  std::string error_;
};

}  // namespace ceems::api
