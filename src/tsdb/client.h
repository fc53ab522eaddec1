#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
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

/// While it exists, requests that this thread sends to a TSDB fail with kUnavailable soon after
/// `stop` is requested: the answer to an HTTP request is made by one thread, and ends with it. The
/// latest scope of a thread counts.
class CancelScope {
 public:
  explicit CancelScope(std::stop_token stop);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  /// The token of the calling thread.
  static const std::stop_token& current();
  /// Whether requests of the calling thread are cancelled now.
  static bool cancelled() { return current().stop_requested(); }

 private:
  std::stop_token outer_;
};

/// Sends requests to the TSDB; tests replace it. Safe for concurrent use. Passes on errors of
/// net::Client: a response with any HTTP status is not an error.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<net::ClientResponse> get(const std::string& url) = 0;
  virtual Result<net::ClientResponse> post_form(const std::string& url,
                                                const std::string& form) = 0;
  /// Makes the current and all later calls fail.
  virtual void cancel() = 0;
};

/// A transport over HTTP. It limits the size of responses and sets the user agent unless the
/// options have another than the default; all other options are up to the caller.
Result<std::unique_ptr<Transport>> http_transport(net::ClientOptions options);

/// A client for the HTTP API that Prometheus, VictoriaMetrics, Thanos and Mimir share. Safe for
/// concurrent use.
///
/// Errors: any of the transport and of the parsers in answer.h. For an HTTP status of 400 and above
/// the message is the TSDB's own error text if it sends one, otherwise "TSDB: HTTP status N". The
/// code is kInvalidArgument (400, 422), kPermissionDenied (401, 403), kNotFound (404, 405) or
/// kUnavailable, so kInvalidArgument always means that the same query will fail again.
class Client {
 public:
  /// `url` is the base without the API path, e.g. "http://localhost:9090" or
  /// "https://host/select/0/prometheus".
  Client(std::string url, std::unique_ptr<Transport> transport, const Clock& clock);

  struct InstantQuery {
    std::string query;
    std::int64_t time_ms = 0;
    /// Sent as lookback_delta, so that samples older than this do not count. 0: the TSDB's default.
    std::chrono::milliseconds lookback{0};
    std::chrono::milliseconds timeout{0};  ///< 0: the TSDB's default
    /// Whether a response that the TSDB itself calls incomplete is an error (kUnavailable).
    bool complete = false;
    std::size_t max_series = 0;  ///< more series are an error (kParse); 0: no limit
  };
  /// Runs an instant query whose result is a vector.
  Result<QueryAnswer> query(const InstantQuery& query);
  /// Reads the raw samples of a range selector, `metric{...}[range]`, as a matrix.
  Result<QueryAnswer> query_samples(const InstantQuery& query);
  /// Runs a range query. The result is a matrix with one sample per step. `lookback` is that of an
  /// InstantQuery.
  Result<QueryAnswer> query_range(const std::string& query,
                                  std::int64_t start_ms,
                                  std::int64_t end_ms,
                                  std::chrono::milliseconds step,
                                  std::chrono::milliseconds lookback = {});
  Result<std::vector<Labels>> series(const std::vector<std::string>& matchers,
                                     std::int64_t start_ms,
                                     std::int64_t end_ms);
  Result<std::vector<std::string>> label_names(const std::vector<std::string>& matchers,
                                               std::int64_t start_ms,
                                               std::int64_t end_ms);
  /// The values of one label among the series that match one of the matchers, sorted.
  Result<std::vector<std::string>> label_values(std::string_view label,
                                                const std::vector<std::string>& matchers,
                                                std::int64_t start_ms,
                                                std::int64_t end_ms);
  /// The targets that Prometheus scrapes. kNotFound for a TSDB that has no such endpoint.
  Result<std::vector<Target>> targets();
  /// Deletes all series that match one of the matchers. Requires the admin API of the TSDB.
  /// kInvalidArgument if there is no matcher.
  Result<> delete_series(const std::vector<std::string>& matchers,
                         std::int64_t start_ms,
                         std::int64_t end_ms);

  /// Deletes them at all times, for TSDBs that do not accept a range. Errors as above.
  Result<> delete_whole_series(const std::vector<std::string>& matchers);

  /// Returns the settings of the TSDB. They are fetched at most every 6 h, or every 30 s after a
  /// failure. Until the TSDB responds, they are the last known settings or the defaults. Missing
  /// endpoints are not failures.
  Settings settings();

  void cancel() { transport_->cancel(); }

 private:
  using Form = std::vector<std::pair<std::string, std::string>>;
  Result<std::string> post(std::string_view path, const Form& form);
  Result<std::string> fetch(const std::string& path_and_query);
  /// `range`: start and end, or nothing.
  Result<> delete_matching(const std::vector<std::string>& matchers, const Form& range);
  Result<QueryAnswer> query_typed(const InstantQuery& query, ResultType expected);
  /// Returns false if the TSDB does not respond.
  bool fetch_settings(Settings& settings);

  std::string url_;
  std::unique_ptr<Transport> transport_;
  const Clock& clock_;
  Mutex mutex_;
  Settings settings_ CEEMS_GUARDED_BY(mutex_);
  Clock::SteadyTime next_fetch_ CEEMS_GUARDED_BY(mutex_);
  std::atomic<bool> settings_failed_{false};  ///< the failure has been logged
};

/// Whether this error of Client::delete_series() means that the TSDB does not accept start and end,
/// like VictoriaMetrics: it can only delete whole series.
bool takes_no_range(const Error& error);

/// Epoch seconds as the API expects them: "1767225600.5".
std::string seconds_text(std::int64_t milliseconds);
/// A PromQL duration: "90s", or "1500ms".
std::string duration_text(std::chrono::milliseconds duration);
/// A PromQL string in double quotes, with backslash, quote and line end escaped.
std::string quote_text(std::string_view text);
/// An RE2 expression that matches exactly these texts, joined with '|', without quotes. Special
/// characters become classes, such as 6[[]1[]], which mean the same in all three kinds of PromQL
/// strings. Only '\' and '^' need a backslash.
std::string exact_regex(const std::vector<std::string>& texts);

}  // namespace ceems::tsdb
