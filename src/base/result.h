#pragma once

#include <expected>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace ceems {

/// A value or an Error. Only this line names std::expected, so the type can be replaced easily.
///
///   CEEMS_TRY(text, host::read_file(path));  // the value, or the error goes to the caller
///   CEEMS_TRY_IN(path, loads, parse_loadavg(text));  // with the path in front of the message
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

/// `CEEMS_TRY(x, expr);` declares the variable x with the value of the Result `expr`, or returns
/// its error as it is; `CEEMS_TRY(expr);` drops the value. An `expr` without a name needs
/// parentheses if it has a comma of its own: `CEEMS_TRY((parse<A, B>(text)));`.
#define CEEMS_TRY(first, ...)                                         \
  CEEMS_TRY_FORM##__VA_OPT__(_VALUE)(CEEMS_TRY_UNIQUE(__COUNTER__), , \
                                     first __VA_OPT__(, ) __VA_ARGS__)

/// The same, and puts the context, made only after a failure, in front of the error's message:
/// `CEEMS_TRY_IN(path, loads, parse_loadavg(text));`.
#define CEEMS_TRY_IN(context, first, ...)                                                   \
  CEEMS_TRY_FORM##__VA_OPT__(_VALUE)(CEEMS_TRY_UNIQUE(__COUNTER__), .with_context(context), \
                                     first __VA_OPT__(, ) __VA_ARGS__)

#define CEEMS_TRY_FORM(result, context, ...)                     \
  do {                                                           \
    if (auto result = __VA_ARGS__; !result) {                    \
      return std::unexpected(std::move(result).error() context); \
    }                                                            \
  } while (false)

#define CEEMS_TRY_FORM_VALUE(result, context, name, ...)       \
  auto result = __VA_ARGS__;                                   \
  if (!result) {                                               \
    return std::unexpected(std::move(result).error() context); \
  }                                                            \
  auto name = *std::move(result)

#define CEEMS_TRY_UNIQUE(number) CEEMS_TRY_JOIN(try_result_, number)
#define CEEMS_TRY_JOIN(left, right) left##right
