#include "net/unix_url.h"

namespace ceems::net {
namespace {

constexpr std::string_view kScheme = "unix:";

}  // namespace

Result<> check_unix_path(std::string_view path) {
  if (!path.starts_with('/')) {
    return fail(ErrorCode::kInvalidArgument,
                "a unix socket needs an absolute path: unix:///run/name.sock");
  }
  if (path.size() > kMaxUnixPathBytes) {
    return fail(ErrorCode::kInvalidArgument,
                "the path of a unix socket has at most {} bytes, this one {}", kMaxUnixPathBytes,
                path.size());
  }
  if (path.ends_with('/') || path.find_first_of(std::string_view("?#\r\n\0", 5)) != path.npos) {
    return fail(
        ErrorCode::kInvalidArgument,
        "the path of a unix socket must name a file, without '?' or '#'; write the URL path after "
        "a colon: unix:///run/name.sock:/prefix");
  }
  return {};
}

bool is_unix_url(std::string_view text) {
  return text.starts_with(kScheme);
}

Result<UnixUrl> parse_unix_url(std::string_view text, std::string_view socket) {
  text.remove_prefix(is_unix_url(text) ? kScheme.size() : text.size());
  if (text.starts_with("//")) {
    text.remove_prefix(2);
    if (!text.empty() && !text.starts_with('/')) {
      return fail(ErrorCode::kInvalidArgument,
                  "a unix socket has no host, its path begins with a third slash: "
                  "unix:///run/name.sock");
    }
  }
  const bool known = !socket.empty() && text.starts_with(socket);
  const std::string_view path = known ? socket : text.substr(0, text.find(':'));
  text.remove_prefix(path.size());
  CEEMS_TRY(check_unix_path(path));
  if (text.starts_with(':')) {
    text.remove_prefix(1);
    if (!text.empty() && !text.starts_with('/')) {
      return fail(ErrorCode::kInvalidArgument,
                  "after the colon of a unix socket comes a path that begins with '/': "
                  "unix:///run/name.sock:/prefix");
    }
  }
  return UnixUrl{.socket = std::string(path), .http = "http://localhost" + std::string(text)};
}

}  // namespace ceems::net
