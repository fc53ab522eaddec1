#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::ingest {

/// The variables of a query template, as PromQL text.
struct QueryVariables {
  std::string uuids;  ///< expression for =~ inside double or single quotes
  std::string scrape_interval, scrape_interval_milli;
  std::string evaluation_interval, evaluation_interval_milli;
  std::string rate_interval;
  std::string range;
};

/// A PromQL query with {{.Name}} in the manner of Go's text/template
/// (https://pkg.go.dev/text/template). Only plain variables and comments, with the markers that
/// trim spaces, {{- .Name -}}; pipelines, conditions and functions are refused. Names: UUIDs,
/// ScrapeInterval, ScrapeIntervalMilli, EvaluationInterval, EvaluationIntervalMilli, RateInterval,
/// Range.
class QueryTemplate {
 public:
  /// kInvalidArgument with what is wrong and where ("... at character 17").
  static Result<QueryTemplate> parse(std::string_view text);
  [[nodiscard]] std::string render(const QueryVariables& variables) const;

 private:
  using Member = std::string QueryVariables::*;
  struct Piece {
    std::string text;
    Member variable = nullptr;  ///< printed behind the text
  };
  std::vector<Piece> pieces_;
};

}  // namespace ceems::ingest
