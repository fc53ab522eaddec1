#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::tsdb {

/// The variables of a query template, as PromQL text.
struct QueryVariables {
  std::string uuids;  ///< regular expression for =~ inside quotes of any kind
  std::string scrape_interval, scrape_interval_milli;
  std::string evaluation_interval, evaluation_interval_milli;
  std::string rate_interval;
  std::string range;
};

/// A PromQL query with variables such as {{.Range}} in the syntax of Go's text/template
/// (https://pkg.go.dev/text/template). It supports only plain variables, comments and the markers
/// that trim spaces, {{- .Range -}}; pipelines, conditions and functions are rejected. The
/// variables are UUIDs, ScrapeInterval, ScrapeIntervalMilli, EvaluationInterval,
/// EvaluationIntervalMilli, RateInterval and Range.
class QueryTemplate {
 public:
  /// kInvalidArgument says what is wrong and where ("... at character 17").
  static Result<QueryTemplate> parse(std::string_view text);
  [[nodiscard]] std::string render(const QueryVariables& variables) const;

 private:
  using Member = std::string QueryVariables::*;
  struct Piece {
    std::string text;
    Member variable = nullptr;  ///< printed after the text
  };
  std::vector<Piece> pieces_;
};

}  // namespace ceems::tsdb
