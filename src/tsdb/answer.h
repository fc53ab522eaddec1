#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ceems::tsdb {

/// Label names and values of one series, in the order of the response.
class Labels {
 public:
  void add(std::string name, std::string value);
  /// Returns the value of a label, or "" if it is missing, which means the same to Prometheus.
  /// Valid as long as the object.
  [[nodiscard]] std::string_view get(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& entries() const {
    return entries_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> entries_;
};

struct Sample {
  std::int64_t time_ms = 0;  ///< epoch
  double value = 0;          ///< may be NaN or infinite
};

struct Series {
  Labels labels;
  std::vector<Sample> samples;  ///< in ascending order of time; exactly one in a vector
};

/// The moment in ms since 1970 that a sample has as its value in seconds. Moments
/// outside the years 1970 to 9999 become the nearest one, and NaN 1970.
std::int64_t moment_ms(double seconds);

enum class ResultType { kVector, kMatrix, kScalar, kString };
std::string_view to_string(ResultType type);

/// The response to /query or /query_range. Native histograms are skipped.
struct QueryAnswer {
  ResultType type = ResultType::kVector;
  std::vector<Series> series;  ///< a scalar is one series without labels
  /// Why the response is incomplete, in the words of the TSDB (a Thanos store did not respond, a
  /// VictoriaMetrics storage node is down), or empty. Remarks about the query itself do not count.
  std::string incomplete;
};

/// These parsers take the body of a response of the Prometheus HTTP API
/// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview). If the TSDB
/// reports an error, its type and text are the message, and the code is kInvalidArgument for
/// bad_data and execution, kTimeout for timeout and canceled, kNotFound for not_found, otherwise
/// kUnavailable. Anything else is kParse: other formats, truncated or too deeply nested responses,
/// and more than `max_series` series (0: no limit).
Result<QueryAnswer> parse_query_answer(std::string body, std::size_t max_series = 0);
/// Parses a response of /labels or /label/<name>/values: a list of strings.
Result<std::vector<std::string>> parse_string_list_answer(std::string body);
/// Parses a response of /series: a list of label sets.
Result<std::vector<Labels>> parse_series_answer(std::string body);
/// A target of /targets that Prometheus scrapes.
struct Target {
  Labels discovered;  ///< before relabelling, such as "__scrape_interval__"
  Labels labels;
  std::string url;         ///< what it scrapes
  std::string health;      ///< "up", "down" or "unknown"
  std::string last_error;  ///< of the last scrape
};
/// Parses a response of /targets: its active targets.
Result<std::vector<Target>> parse_targets_answer(std::string body);
/// Parses a response of /status/*: the strings, numbers and booleans of the data object as text.
/// Other members are skipped.
Result<Labels> parse_status_answer(std::string body);

}  // namespace ceems::tsdb
