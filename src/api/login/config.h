#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/policy.h"
#include "access/session.h"
#include "base/result.h"
#include "config/name_map.h"
#include "config/yaml.h"
#include "net/cidr.h"
#include "net/client/client.h"

namespace ceems::api::login {

/// Login with the users of a file with bcrypt hashes.
struct LocalOptions {
  std::string users_file = {};
};

/// Login at an OpenID Connect provider.
struct OidcOptions {
  std::string name = "single sign-on";  ///< shown on the login page
  std::string issuer = {};
  std::string client_id = {};
  std::string client_secret_file = {};  ///< empty: a public client, which uses PKCE alone
  std::vector<std::string> scopes = {"openid", "profile"};
  std::string redirect_url = {};  ///< empty: derived from --web.external-url
  std::string username_claim = "preferred_username";
  bool sub_fallback = false;
  std::string groups_claim = {};
  std::vector<std::string> admin_groups = {}, support_groups = {};
  net::ClientOptions http = {};
};

/// The credentials of the service account. A request with one of them comes from ceems_lb.
struct ServiceAccountOptions {
  std::string web_user = {};    ///< of the web configuration, which only ceems_lb uses
  std::string token_file = {};  ///< with the text that ceems_lb sends in model::kServiceTokenHeader
};

/// Personal API tokens (tokens.h).
struct TokenOptions {
  bool enabled = true;
  std::chrono::milliseconds default_lifetime{std::chrono::days(90)};
  std::chrono::milliseconds max_lifetime{std::chrono::days(365)};
};

/// `ceems_api_server.identity` and `ceems_api_server.roles` (docs/api/configuration.md). By default
/// every peer may name the user by header, as in the reference.
struct LoginOptions {
  bool header = true;
  /// The peers that may name users by header; absent: all peers.
  std::optional<net::TrustedPeers> trusted_proxies = {};
  /// With the text that they also have to send in model::kProxyTokenHeader; empty: none.
  std::string proxy_token_file = {};
  config::NameMap names = {};  ///< for names in the header
  std::optional<ServiceAccountOptions> service_account = {};
  std::optional<LocalOptions> local = {};
  std::optional<OidcOptions> oidc = {};
  access::SessionLimits session = {};
  TokenOptions tokens = {};
  std::string session_key_file = {};  ///< empty: a generated key in the data directory
  access::Roles roles = {};

  [[nodiscard]] bool has_sessions() const { return local.has_value() || oidc.has_value(); }
  /// Whether people can make personal tokens. While every peer may name users by header, anybody
  /// could make tokens of anybody, which would stay valid when that is no longer so.
  [[nodiscard]] bool offers_tokens() const {
    return tokens.enabled && (!header || trusted_proxies.has_value());
  }
  /// Whether the service account has to prove who it is. By default its name in the header does, as
  /// in the reference.
  [[nodiscard]] bool guards_service_account() const {
    return trusted_proxies.has_value() || service_account.has_value() || has_sessions() || !header;
  }
};

/// Reads both sections; either may be absent. Relative file names start at `directory`. Errors are
/// kInvalidArgument with file, line and key. Login methods require a `header` section, because they
/// protect nothing while every peer may name users by header.
Result<LoginOptions> parse_login(const config::Node& identity,
                                 const config::Node& roles,
                                 const std::string& directory,
                                 std::vector<std::string>& warnings);

/// One log line for each way in which the settings let strangers name users: every peer may name
/// anybody, and web pages of every origin may make browsers do so. `cors_origin` is that of
/// --web.cors.origin.
std::vector<std::string> exposure_warnings(const LoginOptions& options,
                                           std::string_view cors_origin);

}  // namespace ceems::api::login
