#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ceems {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNoData:
      return "no_data";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kPermissionDenied:
      return "permission_denied";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kParse:
      return "parse";
    case ErrorCode::kInternal:
      break;
  }
  return "internal";
}

Error Error::with_context(std::string_view context) && {
  std::string text;
  text.reserve(context.size() + 2 + message.size());
  text.append(context).append(": ").append(message);
  return {code, std::move(text)};
}

Error errno_error(int errno_value, std::string_view context) {
  ErrorCode code = ErrorCode::kInternal;
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
    case ESRCH:
      code = ErrorCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = ErrorCode::kPermissionDenied;
      break;
    case ETIMEDOUT:
      code = ErrorCode::kTimeout;
      break;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRINUSE:
    case EIO:
      code = ErrorCode::kUnavailable;
      break;
    case EINVAL:
      code = ErrorCode::kInvalidArgument;
      break;
    default:
      break;
  }
  // Not std::generic_category(): before the first call of a virtual function of a class, UBSan
  // checks the object with a pipe, and takes a sound one for bad if no file can be opened.
  std::array<char, 128> buffer{};
  std::string text(context);
  text.append(": ").append(::strerror_r(errno_value, buffer.data(), buffer.size()));
  return {code, std::move(text)};
}

}  // namespace ceems
