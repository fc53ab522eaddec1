#include "tsdb/query_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace ceems::tsdb {
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

constexpr std::string_view kSpaces = " \t\r\n";

/// Returns the variable named between {{ and }}, or null.
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

bool is_comment(std::string_view action) {
  constexpr std::size_t kShortest = 4;
  return action.size() >= kShortest && action.starts_with("/*") &&
         action.find("*/") == action.size() - 2;
}

/// The text between {{ and }} without the trim markers "- " and " -".
struct Action {
  std::string_view text;
  bool trims_before = false;
  bool trims_after = false;
};

Action take_markers(std::string_view text) {
  Action action{.text = text};
  if (text.size() > 1 && text.front() == '-' && kSpaces.find(text[1]) != std::string_view::npos) {
    action.trims_before = true;
    action.text.remove_prefix(2);
  }
  const std::size_t size = action.text.size();
  if (size > 1 && action.text.back() == '-' &&
      kSpaces.find(action.text[size - 2]) != std::string_view::npos) {
    action.trims_after = true;
    action.text.remove_suffix(2);
  }
  return action;
}

std::string_view without_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

std::string_view without_begin(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kSpaces), text.size()));
}

}  // namespace

Result<QueryTemplate> QueryTemplate::parse(std::string_view text) {
  if (trim(text).empty()) {
    return fail(ErrorCode::kInvalidArgument, "the query is empty");
  }
  QueryTemplate result;
  std::size_t at = 0;
  bool trims = false;
  const auto piece = [&trims](std::string_view literal) {
    return trims ? without_begin(literal) : literal;
  };
  while (true) {
    const std::size_t open = text.find("{{", at);
    if (open == std::string_view::npos) {
      result.pieces_.push_back({.text = std::string(piece(text.substr(at))), .variable = nullptr});
      return result;
    }
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument,
                  "query template: '{{{{' without '}}}}' at character {}", open + 1);
    }
    const std::string_view between = text.substr(open + 2, close - open - 2);
    const Action action = take_markers(between);
    const auto variable = variable_of(action.text);
    if (variable == nullptr && !is_comment(action.text)) {
      return fail(ErrorCode::kInvalidArgument,
                  "query template: '{{{{{}}}}}' at character {}: expected one of .UUIDs, "
                  ".ScrapeInterval, .ScrapeIntervalMilli, .EvaluationInterval, "
                  ".EvaluationIntervalMilli, .RateInterval, .Range",
                  printable(between, 40), open + 1);
    }
    std::string_view literal = piece(text.substr(at, open - at));
    if (action.trims_before) {
      literal = without_end(literal);
    }
    result.pieces_.push_back({.text = std::string(literal), .variable = variable});
    trims = action.trims_after;
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

}  // namespace ceems::tsdb
