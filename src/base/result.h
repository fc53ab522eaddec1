#pragma once

#include <expected>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace ceems {

/// A value or an Error. Only this line names std::expected, so the type can be replaced easily.
///
///   auto text = host::read_file(path);
///   if (!text) {
///     return fail(std::move(text).error().with_context("reading loadavg"));
///   }
template <typename T = void>
using Result = std::expected<T, Error>;

/// Makes a failed Result of any type from an Error.
[[nodiscard]] inline std::unexpected<Error> fail(Error error) {
  return std::unexpected<Error>(std::move(error));
}

/// fail() with a formatted message: `return fail(ErrorCode::kParse, "expected {}, got '{}'", a,
/// b);`
template <typename... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code,
                                          fmt::format_string<Args...> format,
                                          Args&&... args) {
  return std::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace ceems
