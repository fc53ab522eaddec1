#pragma once

#include <string>
#include <string_view>

namespace ceems {

/// The closed set of reasons for a failure. The outermost caller translates a code once: to a log
/// level, an HTTP status or an exit status.
enum class ErrorCode {
  kNoData,            ///< there is nothing to read, which is not a fault (no powercap, no unit)
  kInvalidArgument,   ///< the caller, a flag or a configuration is wrong
  kNotFound,          ///< a file, row or route does not exist
  kPermissionDenied,  ///< the operating system or an access rule refused
  kUnavailable,       ///< a peer or device does not answer now; a retry may succeed
  kTimeout,           ///< a deadline passed
  kParse,             ///< the input does not have the expected form
  kInternal,          ///< everything else
};

/// Short stable name of a code, e.g. "no_data".
std::string_view to_string(ErrorCode code);

/// A code and a message that reads outside in: "reading stat: open /proc/stat: Permission denied".
/// Messages never carry secrets.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  /// The same error with "context: " before its message.
  [[nodiscard]] Error with_context(std::string_view context) &&;
};

/// The error for a failed system call: code from `errno_value`, message "context: strerror".
Error errno_error(int errno_value, std::string_view context);

}  // namespace ceems
