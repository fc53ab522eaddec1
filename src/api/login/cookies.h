#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace ceems::api::login {

/// All values of a cookie in a request, eight at most: a neighbour (another path or a parent
/// domain) may have put one of the same name in front. RFC 6265 §5.4.
std::vector<std::string> cookie_values(const net::Headers& headers, std::string_view name);

/// How cookies are given out.
struct CookieScope {
  std::string path = "/";
  bool secure = false;
};

/// A Set-Cookie header: HttpOnly, SameSite=Lax. `value` has nothing but base64url and dots. A
/// lifetime of 0 removes the cookie.
void set_cookie(net::Response& response,
                const CookieScope& scope,
                std::string_view name,
                std::string_view value,
                std::chrono::seconds lifetime);

/// Does a request that changes something come from a page of this server? By Sec-Fetch-Site (W3C
/// Fetch Metadata) where the browser sends it, else by Origin (RFC 6454 §7), which must be
/// "scheme://Host" of this request or `origin` (of --web.external-url, may be empty). A request
/// with neither is no modern browser's: true, the form's token decides.
bool is_same_site(const net::Request& request, std::string_view origin);

/// "https://host:port" of an absolute http or https URL in lower case, without the port where it is
/// the scheme's own; empty for others.
std::string origin_of(std::string_view url);
/// The path of an absolute URL without slashes at its end; empty for none.
std::string path_of(std::string_view url);

}  // namespace ceems::api::login
