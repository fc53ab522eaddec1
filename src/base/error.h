#pragma once

#include <string>
#include <string_view>

namespace ceems {

/// The closed set of reasons why something failed. Translated once, at the edge: to a log level, an
/// HTTP status or an exit status.
enum class ErrorCode {
  kNoData,            ///< nothing there to read; not a fault (no powercap directory, no unit)
  kInvalidArgument,   ///< the caller, a flag or a configuration is wrong
  kNotFound,          ///< a file, row or route does not exist
  kPermissionDenied,  ///< the operating system or an access rule refuses
  kUnavailable,       ///< a peer or device does not answer now; trying again may help
  kTimeout,           ///< a deadline passed
  kParse,             ///< input that does not have the expected form
  kInternal,          ///< everything else
};

/// Short stable name of a code, e.g. "no_data".
std::string_view to_string(ErrorCode code);

/// A code and a message that reads outside in: "reading stat: open /proc/stat: Permission denied".
/// Messages never carry secrets.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  /// The same error with "context: " in front of its message.
  [[nodiscard]] Error with_context(std::string_view context) &&;
};

/// The error for a failed system call: code from `errno_value`, message "context: strerror".
Error errno_error(int errno_value, std::string_view context);

}  // namespace ceems
