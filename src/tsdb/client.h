#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "net/client/client.h"
#include "tsdb/answer.h"
#include "tsdb/settings.h"

namespace ceems::tsdb {

/// How requests reach the TSDB; a seam for tests. Safe for concurrent use. Errors are those of
/// net::Client: no HTTP status is one.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<net::ClientResponse> get(const std::string& url) = 0;
  virtual Result<net::ClientResponse> post_form(const std::string& url,
                                                const std::string& form) = 0;
  /// Fails calls under way and later ones.
  virtual void cancel() = 0;
};

/// Over HTTP. The response bound and user agent are set here; everything else is the caller's.
Result<std::unique_ptr<Transport>> http_transport(net::ClientOptions options);

/// Client of the HTTP API that Prometheus, VictoriaMetrics, Thanos and Mimir share. Safe for
/// concurrent use.
///
/// Errors: those of the transport and of the parsers in answer.h; an HTTP status of 400 and above
/// gives the TSDB's own error text where there is one, else "TSDB: HTTP status N" with
/// kInvalidArgument (400, 422), kPermissionDenied (401, 403), kNotFound (404, 405) or kUnavailable.
/// So kInvalidArgument always means that the same query will fail again.
class Client {
 public:
  /// `url` without the API path, e.g. "http://localhost:9090" or
  /// "https://host/select/0/prometheus".
  Client(std::string url, std::unique_ptr<Transport> transport, const Clock& clock);

  struct InstantQuery {
    std::string query;
    std::int64_t time_ms = 0;
    /// Sent as lookback_delta, so that samples older than this do not count; 0: the TSDB's own.
    std::chrono::milliseconds lookback{0};
    std::chrono::milliseconds timeout{0};  ///< 0: the TSDB's own
    /// An answer that the TSDB itself calls incomplete is the error kUnavailable.
    bool complete = false;
    std::size_t max_series = 0;  ///< more are the error kParse; 0: any number
  };
  /// A vector.
  Result<QueryAnswer> query(const InstantQuery& query);
  /// The raw samples of a range selector, `metric{...}[range]`: a matrix.
  Result<QueryAnswer> query_samples(const InstantQuery& query);
  /// A matrix with one sample per step.
  Result<QueryAnswer> query_range(const std::string& query,
                                  std::int64_t start_ms,
                                  std::int64_t end_ms,
                                  std::chrono::milliseconds step);
  Result<std::vector<Labels>> series(const std::vector<std::string>& matchers,
                                     std::int64_t start_ms,
                                     std::int64_t end_ms);
  Result<std::vector<std::string>> label_names(const std::vector<std::string>& matchers,
                                               std::int64_t start_ms,
                                               std::int64_t end_ms);
  /// Deletes all series that match one of the matchers; needs the TSDB's admin API.
  /// kInvalidArgument when there is no matcher.
  Result<> delete_series(const std::vector<std::string>& matchers,
                         std::int64_t start_ms,
                         std::int64_t end_ms);

  /// Settings of the TSDB, asked for at most every 6 h, and every 30 s after a failure; until it
  /// answers they are the last known ones or the defaults. Endpoints that do not exist are no
  /// failure.
  Settings settings();

  void cancel() { transport_->cancel(); }

 private:
  using Form = std::vector<std::pair<std::string, std::string>>;
  Result<std::string> post(std::string_view path, const Form& form);
  Result<QueryAnswer> query_typed(const InstantQuery& query, ResultType expected);
  /// False where the TSDB does not answer.
  bool fetch_settings(Settings& settings);

  std::string url_;
  std::unique_ptr<Transport> transport_;
  const Clock& clock_;
  Mutex mutex_;
  Settings settings_ CEEMS_GUARDED_BY(mutex_);
  Clock::SteadyTime next_fetch_ CEEMS_GUARDED_BY(mutex_);
  std::atomic<bool> settings_failed_{false};  ///< and that is in the log
};

/// "1767225600.5": epoch seconds as the API takes them.
std::string seconds_text(std::int64_t milliseconds);
/// "90000ms": a duration in PromQL.
std::string duration_text(std::chrono::milliseconds duration);
/// Text inside double quotes in PromQL (escapes backslash, quote and line end).
std::string quote_text(std::string_view text);
/// An RE2 expression that matches exactly these texts: escaped and joined with '|'. Not quoted.
std::string exact_regex(const std::vector<std::string>& texts);

}  // namespace ceems::tsdb
