#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ceems::promql {

/// Why a query is refused, and at which place.
struct SyntaxError {
  std::size_t offset = 0;  ///< bytes from the start of the query
  std::size_t line = 1;
  std::size_t column = 1;  ///< in characters, from 1
  std::string message;     ///< "unexpected ')', expected an expression"

  /// "1:15: parse error: message", as Prometheus begins it.
  [[nodiscard]] std::string text() const {
    return fmt::format("{}:{}: parse error: {}", line, column, message);
  }
};

/// The error at `offset` of `query`, with line and column.
SyntaxError syntax_error_at(std::string_view query, std::size_t offset, std::string message);

template <typename T>
using Parsed = std::expected<T, SyntaxError>;

}  // namespace ceems::promql
