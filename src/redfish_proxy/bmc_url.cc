#include "redfish_proxy/bmc_url.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "net/client/transfer.h"

namespace ceems::redfish_proxy {
namespace {

constexpr std::size_t kMaxUrlBytes = 2048;

std::string bracketed(const std::string& host) {
  return host.contains(':') ? "[" + host + "]" : host;
}

/// libcurl also understands URLs with one or three slashes, and with blanks around them.
bool has_known_form(std::string_view text) {
  const std::string_view rest = text.substr(std::min(text.find("://"), text.size()));
  const std::string scheme = to_lower(text.substr(0, text.size() - rest.size()));
  return (scheme == "http" || scheme == "https") && rest.size() > 3 && rest[3] != '/' &&
         text.find_first_of(" \t\r\n\\") == std::string_view::npos && text.size() <= kMaxUrlBytes;
}

}  // namespace

std::string BmcUrl::origin() const {
  return fmt::format("{}://{}:{}", tls ? "https" : "http", bracketed(host), port);
}

std::string BmcUrl::host_field() const {
  return port == (tls ? "443" : "80") ? bracketed(host) : bracketed(host) + ":" + port;
}

Result<BmcUrl> parse_bmc_url(const std::string& text) {
  auto url = has_known_form(text) ? net::parse_url(text) : fail(ErrorCode::kInvalidArgument, "");
  if (!url) {
    return fail(ErrorCode::kInvalidArgument,
                "invalid url string: expected http://HOST[:PORT] or https://HOST[:PORT]");
  }
  BmcUrl bmc{.tls = url->scheme == "https",
             .host = std::move(url->host),
             .port = std::move(url->port),
             .base_path = std::move(url->path),
             .query = {}};
  if (bmc.host.starts_with('[')) {
    bmc.host = bmc.host.substr(1, bmc.host.size() - 2);
  }
  while (bmc.base_path.ends_with('/')) {
    bmc.base_path.pop_back();
  }
  if (const auto question = url->full.find('?'); question != std::string::npos) {
    bmc.query = url->full.substr(question + 1);
  }
  return bmc;
}

Result<BmcUrl> parse_bmc_header(const std::string& text) {
  auto bmc = parse_bmc_url(text);
  if (bmc && (!bmc->base_path.empty() || text.find_first_of("@?#") != std::string::npos)) {
    return fail(ErrorCode::kInvalidArgument, "expected a URL without user, path and query");
  }
  return bmc;
}

}  // namespace ceems::redfish_proxy
