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

/// Equal, in a time that depends on the lengths alone.
bool same_secret(std::string_view left, std::string_view right);

/// Signs texts that a browser keeps: HMAC-SHA-256 (RFC 2104). Every purpose has a key of its own,
/// derived from the one key, so that a text signed for one is worth nothing for another. Safe for
/// concurrent use.
class Signer {
 public:
  static constexpr std::size_t kShortestKey = 32;  // bytes

  /// kInvalidArgument for a key that is too short.
  static Result<Signer> create(std::string key);

  /// The signature alone, 32 bytes.
  [[nodiscard]] std::string signature(std::string_view purpose, std::string_view text) const;

  /// Fields with their signature: base64url texts joined by dots.
  [[nodiscard]] std::string seal(std::string_view purpose,
                                 const std::vector<std::string>& fields) const;
  /// The fields of a sealed text; nothing for one that was not made by seal() with this key and
  /// purpose, is longer than kLongestToken or has another number of fields.
  [[nodiscard]] std::optional<std::vector<std::string>> open(std::string_view purpose,
                                                             std::string_view token,
                                                             std::size_t fields) const;

  static constexpr std::size_t kLongestToken = 4096;  // as much as browsers keep

 private:
  explicit Signer(std::string key) : key_(std::move(key)) {}
  std::string key_;
};

/// How a session began.
enum class Way { kLocal, kOidc };

/// "local", "oidc"
std::string_view way_name(Way way);

/// What the cookie of a session says. Times are epoch seconds by the server's clock.
struct Session {
  std::string id = {};  ///< random; names the session in the list of those that were ended
  std::string user = {};
  Way way = Way::kLocal;
  Role granted = Role::kNobody;  ///< by groups of the provider
  std::string credential = {};   ///< changes with the password of a local user
  std::int64_t begun = 0;
  std::int64_t used = 0;  ///< when the cookie was last written
};

struct SessionLimits {
  std::chrono::seconds idle{std::chrono::hours(8)};
  std::chrono::seconds absolute{std::chrono::hours(24 * 7)};
};

std::string session_token(const Signer& signer, const Session& session);

/// The session of a token. Nothing for tokens that were tampered with, that are idle or old beyond
/// the limits, or that were made more than a minute in the future (a clock that was set back).
std::optional<Session> parse_session(const Signer& signer,
                                     const SessionLimits& limits,
                                     std::string_view token,
                                     std::int64_t now);

/// Is it time to write the cookie anew? After a tenth of the idle time.
bool wants_renewal(const SessionLimits& limits, const Session& session, std::int64_t now);

/// One login at a provider under way (RFC 6749 §10.12: bound to the browser by its cookie). The
/// code verifier of PKCE (RFC 7636) and the nonce (OpenID Connect Core §15.5.2) are derived from
/// the state, so no secret is in the cookie.
struct LoginState {
  std::string state = {};
  std::string next = {};  ///< where to go then; see safe_next()
  std::int64_t begun = 0;
};
inline constexpr std::chrono::seconds kLoginTime{600};

std::string login_state_token(const Signer& signer, const LoginState& state);
/// Nothing for cookies of another browser's login, too old ones, or those from the future.
std::optional<LoginState> parse_login_state(const Signer& signer,
                                            std::string_view token,
                                            std::string_view state,
                                            std::int64_t now);
std::string nonce_of(const Signer& signer, std::string_view state);
/// 43 characters of the unreserved set (RFC 7636 §4.1).
std::string code_verifier_of(const Signer& signer, std::string_view state);
/// BASE64URL(SHA256(verifier)), RFC 7636 §4.2.
std::string code_challenge_of(std::string_view verifier);

/// A name that may be a user's: 1 to 256 bytes of UTF-8 without control characters and blanks at
/// its ends.
bool is_user_name(std::string_view name);

/// Where a login may lead: `text` when it is an absolute path on this server, else "". Refused:
/// other schemes and hosts ("//host", "/\host"), control characters, backslashes, anything but
/// ASCII, more than 1 KiB. (Open redirects: RFC 9700 §4.11.)
std::string safe_next(std::string_view text);

}  // namespace ceems::access
