#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::redfish_proxy {

/// The base URL of a BMC.
struct BmcUrl {
  bool tls = false;
  std::string host;       ///< in lower case, IPv6 without brackets
  std::string port;       ///< never empty
  std::string base_path;  ///< without '/' at its end
  std::string query;      ///< without '?'

  /// "https://bmc1:443", "http://[2001:db8::1]:80". Equal for all spellings of the same server.
  [[nodiscard]] std::string origin() const;
  /// The value of Host: the port is left out if it is the default one.
  [[nodiscard]] std::string host_field() const;
};

/// Parses an absolute http or https URL. A user and password in it are dropped. Returns
/// kInvalidArgument for anything else; the message does not repeat the text, which may hold a
/// password.
Result<BmcUrl> parse_bmc_url(const std::string& text);

/// Parses the value of X-Redfish-Url: the URL of a server without user, path or query.
Result<BmcUrl> parse_bmc_header(const std::string& text);

}  // namespace ceems::redfish_proxy
