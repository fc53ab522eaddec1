#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/utf8.h"
#include "cacct/output/answer.h"

namespace ceems::cacct {

// Reads answers of the API server that are not lists of units or usage (answer.h).

inline std::unexpected<Error> unexpected_answer() {
  return fail(ErrorCode::kParse, "unexpected answer of the API server");
}

/// The member "data" of an answer that nests at most 16 levels deep; it refers to the parser.
template <typename Value>
Result<Value> data_in(simdjson::dom::parser& parser, const std::string& body) {
  constexpr std::size_t kMaxNesting = 16;
  simdjson::dom::element document;
  Value data;
  if (parser.allocate(std::max<std::size_t>(body.size(), 1), kMaxNesting) != simdjson::SUCCESS ||
      parser.parse(body).get(document) != simdjson::SUCCESS ||
      document["data"].get(data) != simdjson::SUCCESS) {
    return unexpected_answer();
  }
  return data;
}

/// A text that is safe for a terminal, or "" if it is missing. `row` is an element or an object.
template <typename Row>
std::string text_of(const Row& row, std::string_view name) {
  std::string_view text;
  return row[name].get(text) == simdjson::SUCCESS ? terminal_safe(text) : std::string();
}

template <typename Row>
std::optional<double> number_of(const Row& row, std::string_view name) {
  double number = 0;
  return row[name].get(number) == simdjson::SUCCESS && std::isfinite(number) ? std::optional(number)
                                                                             : std::nullopt;
}

}  // namespace ceems::cacct
