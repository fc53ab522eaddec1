#pragma once

#include <optional>
#include <string>
#include <vector>

#include "access/cidr.h"
#include "access/policy.h"
#include "access/session.h"
#include "base/result.h"
#include "config/yaml.h"
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

/// `ceems_api_server.identity` and `ceems_api_server.roles` (docs/api/configuration.md). By default
/// every peer may name the user by header, as in the reference.
struct LoginOptions {
  bool header = true;
  /// The peers that may name users by header; absent: all peers.
  std::optional<access::TrustedPeers> trusted_proxies = {};
  std::optional<LocalOptions> local = {};
  std::optional<OidcOptions> oidc = {};
  access::SessionLimits session = {};
  std::string session_key_file = {};  ///< empty: a generated key in the data directory
  access::Roles roles = {};

  [[nodiscard]] bool has_sessions() const { return local.has_value() || oidc.has_value(); }
};

/// Reads both sections; either may be absent. Relative file names start at `directory`. Errors are
/// kInvalidArgument with file, line and key. Login methods require a `header` section, because they
/// protect nothing while every peer may name users by header.
Result<LoginOptions> parse_login(const config::Node& identity,
                                 const config::Node& roles,
                                 const std::string& directory,
                                 std::vector<std::string>& warnings);

}  // namespace ceems::api::login
