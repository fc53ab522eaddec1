#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ceems::tsdb {

/// Label names and values of one series, in the order of the answer.
class Labels {
 public:
  void add(std::string name, std::string value);
  /// Value of a label, or "" (which means the same in Prometheus). Valid as long as the object.
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
  std::vector<Sample> samples;  ///< ascending times; exactly one in a vector
};

enum class ResultType { kVector, kMatrix, kScalar, kString };
std::string_view to_string(ResultType type);

/// Answer of /query and /query_range. Native histograms are left out.
struct QueryAnswer {
  ResultType type = ResultType::kVector;
  std::vector<Series> series;  ///< a scalar is one series without labels
  /// Why the answer is not complete in the TSDB's own words (a Thanos store that did not answer, a
  /// VictoriaMetrics storage node that is down), or empty. Remarks about the query are none.
  std::string incomplete;
};

/// The parsers below take the body of an answer of the Prometheus HTTP API
/// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview). Errors: what the
/// TSDB reports itself (kInvalidArgument for bad_data and execution, kTimeout for timeout and
/// canceled, kNotFound for not_found, else kUnavailable) with its type and text; kParse for
/// anything that is not such an answer, truncated ones and answers nested too deeply included, and
/// for more than `max_series` (0: any number).
Result<QueryAnswer> parse_query_answer(std::string body, std::size_t max_series = 0);
/// /labels and /label/<name>/values: a list of texts.
Result<std::vector<std::string>> parse_string_list_answer(std::string body);
/// /series: a list of label sets.
Result<std::vector<Labels>> parse_series_answer(std::string body);
/// /status/*: the texts, numbers and booleans of the data object as text; other members left out.
Result<Labels> parse_status_answer(std::string body);

}  // namespace ceems::tsdb
