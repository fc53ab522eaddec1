#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace ceems::api::login {

/// All values of a cookie in a request, up to 64 KiB of them. Another application, at another path
/// or parent domain, may have set any number of cookies with the same name, and the browser may
/// send them first (RFC 6265 §5.4).
std::vector<std::string> cookie_values(const net::Headers& headers, std::string_view name);

/// Attributes of the cookies that the server sets.
struct CookieScope {
  std::string path = "/";
  bool secure = false;
};

/// The name of a cookie in this scope. If it is secure and its path is "/", the name gets the
/// prefix
/// "__Host-", with which browsers accept the cookie from this host alone and not from its
/// neighbours (https://www.rfc-editor.org/rfc/rfc6265.html and draft-ietf-httpbis-rfc6265bis
/// §4.1.3.2).
std::string cookie_name(const CookieScope& scope, std::string_view name);

/// Adds a Set-Cookie header with HttpOnly and SameSite=Lax for cookie_name(). `value` contains only
/// base64url characters and dots. A lifetime of 0 removes the cookie.
void set_cookie(net::Response& response,
                const CookieScope& scope,
                std::string_view name,
                std::string_view value,
                std::chrono::seconds lifetime);

/// True if a request comes from a page of this server. Uses Sec-Fetch-Site (W3C Fetch Metadata) if
/// the browser sends it, otherwise Origin (RFC 6454 §7), which must be "scheme://Host" of this
/// request or `origin` (of --web.external-url, may be empty). Also true if the request has neither
/// header, because it does not come from a modern browser; the form token then decides.
bool is_same_site(const net::Request& request, std::string_view origin);

/// "https://host:port" of an absolute http or https URL in lower case, without the default port of
/// the scheme. Empty for other texts.
std::string origin_of(std::string_view url);
/// The path of an absolute URL without trailing slashes; empty if it has none.
std::string path_of(std::string_view url);

}  // namespace ceems::api::login
