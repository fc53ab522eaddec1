#include "api/updater/query_template.h"

#include <array>
#include <utility>

#include "base/strings.h"

namespace ceems::api {
namespace {

using Variable = std::pair<std::string_view, std::string QueryVariables::*>;

constexpr std::array<Variable, 7> kVariables{{
    {"UUIDs", &QueryVariables::uuids},
    {"ScrapeInterval", &QueryVariables::scrape_interval},
    {"ScrapeIntervalMilli", &QueryVariables::scrape_interval_milli},
    {"EvaluationInterval", &QueryVariables::evaluation_interval},
    {"EvaluationIntervalMilli", &QueryVariables::evaluation_interval_milli},
    {"RateInterval", &QueryVariables::rate_interval},
    {"Range", &QueryVariables::range},
}};

/// The variable named by the text between {{ and }}, or null.
std::string QueryVariables::* variable_of(std::string_view action) {
  action = trim(action);
  if (!action.starts_with('.')) {
    return nullptr;
  }
  action.remove_prefix(1);
  for (const auto& [name, member] : kVariables) {
    if (name == action) {
      return member;
    }
  }
  return nullptr;
}

}  // namespace

Result<QueryTemplate> QueryTemplate::parse(std::string_view text) {
  if (trim(text).empty()) {
    return fail(ErrorCode::kInvalidArgument, "the query is empty");
  }
  QueryTemplate result;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = text.find("{{", at);
    if (open == std::string_view::npos) {
      result.pieces_.push_back({.text = std::string(text.substr(at)), .variable = nullptr});
      return result;
    }
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument,
                  "query template: '{{{{' without '}}}}' at character {}", open + 1);
    }
    const std::string_view action = text.substr(open + 2, close - open - 2);
    const auto variable = variable_of(action);
    if (variable == nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  "query template: '{{{{{}}}}}' at character {}: expected one of .UUIDs, "
                  ".ScrapeInterval, .ScrapeIntervalMilli, .EvaluationInterval, "
                  ".EvaluationIntervalMilli, .RateInterval, .Range",
                  printable(action, 40), open + 1);
    }
    result.pieces_.push_back(
        {.text = std::string(text.substr(at, open - at)), .variable = variable});
    at = close + 2;
  }
}

std::string QueryTemplate::render(const QueryVariables& variables) const {
  std::string query;
  for (const auto& piece : pieces_) {
    query += piece.text;
    if (piece.variable != nullptr) {
      query += variables.*piece.variable;
    }
  }
  return query;
}

}  // namespace ceems::api
