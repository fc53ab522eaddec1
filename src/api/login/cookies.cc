#include "api/login/cookies.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::api::login {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";

/// The part after "scheme://".
std::string_view behind_scheme(std::string_view url) {
  const auto colon = url.find("://");
  return colon == std::string_view::npos ? std::string_view() : url.substr(colon + 3);
}

/// True for a hostname, an IPv4 address or an IPv6 address in brackets, optionally with a port (RFC
/// 3986 §3.2), but without user information.
bool is_authority(std::string_view text) {
  const auto end = text.starts_with('[') ? text.find(']') : text.find(':');
  const auto is_word = [](char byte) {
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || byte == '.' || byte == '-' ||
           byte == '_';
  };
  std::string_view host = text.substr(0, end);
  std::string_view rest = end == std::string_view::npos ? std::string_view() : text.substr(end);
  bool good = !host.empty() && std::ranges::all_of(host, is_word);
  if (text.starts_with('[')) {
    host.remove_prefix(1);
    good = rest.starts_with(']') && !host.empty() &&
           std::ranges::all_of(host, [&](char byte) { return is_word(byte) || byte == ':'; });
    rest.remove_prefix(rest.empty() ? 0 : 1);
  }
  return good && (rest.empty() || (rest.starts_with(':') && rest.size() > 1 &&
                                   std::ranges::all_of(rest.substr(1), is_digit)));
}

}  // namespace

std::vector<std::string> cookie_values(const net::Headers& headers, std::string_view name) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;
  std::size_t bytes = 0;
  std::vector<std::string> values;
  for (const auto& [header, text] : headers) {
    if (to_lower(header) != "cookie") {
      continue;
    }
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view pair = trim(take_until(rest, ';'));
      const auto equals = pair.find('=');
      if (equals == std::string_view::npos || pair.substr(0, equals) != name) {
        continue;
      }
      bytes += pair.size() - equals - 1;
      if (bytes > kMaxBytes) {
        return values;
      }
      values.emplace_back(pair.substr(equals + 1));
    }
  }
  return values;
}

std::string cookie_name(const CookieScope& scope, std::string_view name) {
  const bool of_host = scope.secure && scope.path == "/";
  return std::string(of_host ? "__Host-" : "") + std::string(name);
}

void set_cookie(net::Response& response,
                const CookieScope& scope,
                std::string_view name,
                std::string_view value,
                std::chrono::seconds lifetime) {
  response.headers.emplace_back(
      "Set-Cookie",
      fmt::format("{}={}; Path={}; Max-Age={}; HttpOnly; SameSite=Lax{}", cookie_name(scope, name),
                  value, scope.path, lifetime.count(), scope.secure ? "; Secure" : ""));
}

bool is_same_site(const net::Request& request, std::string_view origin) {
  if (const std::string* site = net::find_header(request.headers, "Sec-Fetch-Site"); site) {
    return *site == "same-origin";
  }
  const std::string* sent = net::find_header(request.headers, "Origin");
  if (sent == nullptr) {
    return true;
  }
  const std::string claimed = origin_of(*sent);
  if (claimed.empty()) {
    return false;  // also for "null"
  }
  if (!origin.empty() && claimed == origin) {
    return true;
  }
  const std::string* host = net::find_header(request.headers, "Host");
  // Behind a proxy that terminates TLS, the scheme is unknown here, so only the host is compared.
  return host != nullptr && !host->empty() &&
         behind_scheme(claimed) ==
             behind_scheme(
                 origin_of(std::string(claimed.starts_with(kHttps) ? kHttps : kHttp) + *host));
}

std::string origin_of(std::string_view url) {
  const std::string lower = to_lower(url.substr(0, url.find('/', url.find("://") + 3)));
  const bool tls = lower.starts_with(kHttps);
  if (!tls && !lower.starts_with(kHttp)) {
    return {};
  }
  std::string_view host = behind_scheme(lower);
  host = host.substr(0, host.find_first_of("/?#"));
  if (!is_authority(host)) {
    return {};
  }
  const std::string_view own_port = tls ? ":443" : ":80";
  if (host.ends_with(own_port)) {
    host.remove_suffix(own_port.size());
  }
  return std::string(tls ? kHttps : kHttp) + std::string(host);
}

std::string path_of(std::string_view url) {
  const std::string_view rest = behind_scheme(url);
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos) {
    return {};
  }
  std::string_view path = rest.substr(slash);
  path = path.substr(0, path.find_first_of("?#"));
  while (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  return std::string(path);
}

}  // namespace ceems::api::login
