#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "access/jwt.h"
#include "api/login/config.h"
#include "base/clock.h"
#include "base/result.h"

namespace ceems::api::login {

/// True for an https URL without user, query and fragment. Also for http on localhost, 127.0.0.1
/// and [::1], for tests.
bool is_provider_url(const std::string& url);

/// Client of an OpenID Connect provider: authorization code flow (OpenID Connect Core §3.1, RFC
/// 6749 §4.1) with PKCE (RFC 7636). The endpoints and keys of the provider are cached for an hour.
/// After a failure it is not asked again for ten seconds. An unknown key id causes the keys to be
/// fetched again, at most twice a minute. Calls block for up to 10 s per request to the provider.
/// Safe for concurrent use.
class Provider {
 public:
  /// kInvalidArgument for invalid options. Does not contact the provider.
  static Result<std::unique_ptr<Provider>> create(OidcOptions options, const Clock& clock);
  ~Provider();
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  /// The URL to send the browser to. kUnavailable, kTimeout or kParse if the metadata of the
  /// provider cannot be read.
  Result<std::string> authorization_url(std::string_view redirect_url,
                                        std::string_view state,
                                        std::string_view nonce,
                                        std::string_view code_challenge);

  /// Exchanges the code for the claims of the user. kPermissionDenied if the provider refuses it or
  /// its ID token is invalid; otherwise the errors of authorization_url(). Errors contain no token,
  /// code or secret.
  Result<access::Claims> redeem(const std::string& code,
                                std::string_view redirect_url,
                                std::string_view code_verifier,
                                const std::string& nonce);

  /// The role that the groups of the user give.
  [[nodiscard]] access::Role role_of(const access::Claims& claims) const;
  [[nodiscard]] const OidcOptions& options() const;

 private:
  struct Impl;
  explicit Provider(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::api::login
