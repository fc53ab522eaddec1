#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::net {

/// The size of sun_path without the terminating null byte (unix(7)).
inline constexpr std::size_t kMaxUnixPathBytes = 107;

/// Checks that `path` is an absolute path that a unix socket can have. Returns kInvalidArgument
/// otherwise.
Result<> check_unix_path(std::string_view path);

/// The URL of a server that listens on a unix socket: `unix:///run/x.sock`, or with a path prefix
/// after a colon, as in nginx: `unix:///run/x.sock:/prefix`. Percent-encoding is not decoded.
struct UnixUrl {
  std::string socket;  ///< absolute path
  std::string http;    ///< what to request through it: "http://localhost/prefix"
};

bool is_unix_url(std::string_view text);

/// Parses the URL of a unix socket. The path of the socket ends at the first colon. If the text
/// begins with a known `socket`, the rest may follow without a colon: "unix:///run/x.sock/api". The
/// message of kInvalidArgument does not repeat the text.
Result<UnixUrl> parse_unix_url(std::string_view text, std::string_view socket = {});

}  // namespace ceems::net
