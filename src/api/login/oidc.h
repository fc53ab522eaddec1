#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "access/jwt.h"
#include "api/login/config.h"
#include "base/clock.h"
#include "base/result.h"

namespace ceems::api::login {

/// An https URL without user, query and fragment; http only on this machine (localhost, 127.0.0.1,
/// [::1]), for tests.
bool is_provider_url(const std::string& url);

/// A provider of OpenID Connect: authorization code flow (OpenID Connect Core §3.1, RFC 6749 §4.1)
/// with PKCE (RFC 7636). What it is asked for once (its addresses, its keys) is kept for an hour; a
/// failure is not repeated for ten seconds, unknown key ids ask for new keys at most twice a
/// minute. Calls wait for the network, 10 s at most. Safe for concurrent use.
class Provider {
 public:
  /// kInvalidArgument for options that cannot be used. Nothing is asked yet.
  static Result<std::unique_ptr<Provider>> create(OidcOptions options, const Clock& clock);
  ~Provider();
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  /// Where to send the browser. kUnavailable, kTimeout or kParse when the provider does not say.
  Result<std::string> authorization_url(std::string_view redirect_url,
                                        std::string_view state,
                                        std::string_view nonce,
                                        std::string_view code_challenge);

  /// Who the code is for. kPermissionDenied when the provider or the checks of its ID token refuse;
  /// else as above. Messages hold no token, code or secret.
  Result<access::Claims> redeem(const std::string& code,
                                std::string_view redirect_url,
                                std::string_view code_verifier,
                                const std::string& nonce);

  /// By the groups of the user.
  [[nodiscard]] access::Role role_of(const access::Claims& claims) const;
  [[nodiscard]] const OidcOptions& options() const;

 private:
  struct Impl;
  explicit Provider(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::api::login
