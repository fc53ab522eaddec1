#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::net {

/// What sun_path holds besides its end (unix(7)).
inline constexpr std::size_t kMaxUnixPathBytes = 107;

/// Of an absolute path that a unix socket can have; kInvalidArgument for another.
Result<> check_unix_path(std::string_view path);

/// The URL of a server behind a unix socket: `unix:///run/x.sock`, and with a path below which it
/// answers after a colon, as nginx writes it: `unix:///run/x.sock:/prefix`. Nothing is decoded.
struct UnixUrl {
  std::string socket;  ///< absolute path
  std::string http;    ///< what is asked through it: "http://localhost/prefix"
};

bool is_unix_url(std::string_view text);

/// kInvalidArgument says what is wrong, and does not repeat the text. The socket ends at the first
/// colon, or is `socket` where that is known and the text goes on: "unix:///run/x.sock/api".
Result<UnixUrl> parse_unix_url(std::string_view text, std::string_view socket = {});

}  // namespace ceems::net
