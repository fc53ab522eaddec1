#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/role.h"
#include "base/result.h"

namespace ceems::access {

/// Compares in a time that depends only on the lengths.
bool same_secret(std::string_view left, std::string_view right);

/// Signs texts that a browser keeps, with HMAC-SHA-256 (RFC 2104). Each purpose has its own key,
/// derived from the one key, so a text signed for one purpose is not valid for another. Safe for
/// concurrent use.
class Signer {
 public:
  static constexpr std::size_t kMinKeyBytes = 32;

  /// kInvalidArgument if the key is too short.
  static Result<Signer> create(std::string key);

  /// Only the signature, 32 bytes.
  [[nodiscard]] std::string signature(std::string_view purpose, std::string_view text) const;

  /// The fields and their signature: base64url texts joined by dots.
  [[nodiscard]] std::string seal(std::string_view purpose,
                                 const std::vector<std::string>& fields) const;
  /// The fields of a sealed text. Nothing if seal() did not make it with this key and purpose, if
  /// it is longer than kMaxTokenBytes, or if it has another number of fields.
  [[nodiscard]] std::optional<std::vector<std::string>> open(std::string_view purpose,
                                                             std::string_view token,
                                                             std::size_t fields) const;

  static constexpr std::size_t kMaxTokenBytes = 4096;  // the largest cookie that browsers keep

 private:
  explicit Signer(std::string key) : key_(std::move(key)) {}
  std::string key_;
};

/// How a user logged in.
enum class LoginMethod { kLocal, kOidc };

/// "local", "oidc"
std::string_view login_method_name(LoginMethod method);

/// The content of a session cookie. Times are epoch seconds by the server's clock.
struct Session {
  std::string id = {};  ///< random; identifies the session in the list of ended ones
  std::string user = {};
  LoginMethod method = LoginMethod::kLocal;
  Role granted = Role::kNobody;  ///< from the groups at the provider
  std::string credential = {};   ///< changes with the password of a local user
  std::int64_t begun = 0;
  std::int64_t used = 0;  ///< when the cookie was last written
};

struct SessionLimits {
  std::chrono::seconds idle{std::chrono::hours(8)};
  std::chrono::seconds absolute{std::chrono::hours(24 * 7)};
};

std::string session_token(const Signer& signer, const Session& session);

/// The session of a token. Nothing if the token was tampered with, is idle or older than the limits
/// allow, or was made more than a minute in the future (the clock was set back).
std::optional<Session> parse_session(const Signer& signer,
                                     const SessionLimits& limits,
                                     std::string_view token,
                                     std::int64_t now);

/// Whether the cookie should be written again: after a tenth of the idle time.
bool wants_renewal(const SessionLimits& limits, const Session& session, std::int64_t now);

/// A login at a provider that is in progress, bound to the browser by its cookie (RFC 6749 §10.12).
/// The code verifier of PKCE (RFC 7636) and the nonce (OpenID Connect Core §15.5.2) are derived
/// from the state, so the cookie contains no secret.
struct LoginState {
  std::string state = {};
  std::string next = {};  ///< the path to show after the login; see safe_next()
  std::int64_t begun = 0;
};
inline constexpr std::chrono::seconds kLoginTime{600};

std::string login_state_token(const Signer& signer, const LoginState& state);
/// Nothing for a cookie of another browser's login, an expired one, or one from the future.
std::optional<LoginState> parse_login_state(const Signer& signer,
                                            std::string_view token,
                                            std::string_view state,
                                            std::int64_t now);
std::string nonce_of(const Signer& signer, std::string_view state);
/// 43 unreserved characters (RFC 7636 §4.1).
std::string code_verifier_of(const Signer& signer, std::string_view state);
/// BASE64URL(SHA256(verifier)), RFC 7636 §4.2.
std::string code_challenge_of(std::string_view verifier);

/// Whether the text may be a user name: 1 to 256 bytes of UTF-8, without control characters, and
/// without white space at its ends.
bool is_user_name(std::string_view name);

/// The path that a login may lead to: `text` if it is an absolute path on this server, otherwise
/// "". Refuses other schemes and hosts ("//host", "/\host"), control characters, blanks,
/// backslashes, quotes, angle brackets, anything but ASCII, and more than 1 KiB. RFC 9700 §4.11
/// describes open redirects.
std::string safe_next(std::string_view text);

}  // namespace ceems::access
