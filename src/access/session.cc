#include "access/session.h"

#include <algorithm>
#include <array>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "crypto/base64.h"

namespace ceems::access {
namespace {

constexpr std::string_view kSessionPurpose = "session 1";
constexpr std::string_view kLoginPurpose = "login 1";
constexpr std::int64_t kClockSkew = 60;  // seconds

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out{};
  unsigned size = 0;
  const unsigned char* done = ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                     bytes_of(text), text.size(), out.data(), &size);
  CEEMS_CHECK(done != nullptr && size == out.size());
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

bool is_control(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value < 0x20 || value == 0x7F;
}

}  // namespace

bool same_secret(std::string_view left, std::string_view right) {
  return left.size() == right.size() &&
         ::CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

Result<Signer> Signer::create(std::string key) {
  if (key.size() < kMinKeyBytes) {
    return fail(ErrorCode::kInvalidArgument, "the key has {} bytes, expected at least {}",
                key.size(), kMinKeyBytes);
  }
  return Signer(std::move(key));
}

std::string Signer::signature(std::string_view purpose, std::string_view text) const {
  return hmac_sha256(hmac_sha256(key_, purpose), text);
}

std::string Signer::seal(std::string_view purpose, const std::vector<std::string>& fields) const {
  std::string text;
  for (const std::string& field : fields) {
    text += crypto::base64url_encode(field) + ".";
  }
  return text + crypto::base64url_encode(signature(purpose, text));
}

std::optional<std::vector<std::string>> Signer::open(std::string_view purpose,
                                                     std::string_view token,
                                                     std::size_t fields) const {
  if (token.size() > kMaxTokenBytes) {
    return std::nullopt;
  }
  const auto dot = token.rfind('.');
  if (dot == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view text = token.substr(0, dot + 1);
  const auto signed_with = crypto::base64url_decode(token.substr(dot + 1));
  if (!signed_with || signed_with->size() != SHA256_DIGEST_LENGTH ||
      !same_secret(*signed_with, signature(purpose, text))) {
    return std::nullopt;
  }
  std::vector<std::string> opened;
  for (const std::string_view part : split(token.substr(0, dot), '.')) {
    auto field = crypto::base64url_decode(part);
    if (!field) {
      return std::nullopt;
    }
    opened.push_back(*std::move(field));
  }
  if (opened.size() != fields) {
    return std::nullopt;
  }
  return opened;
}

std::string_view login_method_name(LoginMethod method) {
  return method == LoginMethod::kLocal ? "local" : "oidc";
}

std::string session_token(const Signer& signer, const Session& session) {
  return signer.seal(kSessionPurpose,
                     {session.id, session.user, std::string(login_method_name(session.method)),
                      std::string(role_name(session.granted)), session.credential,
                      std::to_string(session.begun), std::to_string(session.used)});
}

std::optional<Session> parse_session(const Signer& signer,
                                     const SessionLimits& limits,
                                     std::string_view token,
                                     std::int64_t now) {
  constexpr std::size_t kFields = 7;
  const auto fields = signer.open(kSessionPurpose, token, kFields);
  if (!fields) {
    return std::nullopt;
  }
  const auto granted = parse_role((*fields)[3]);
  const auto begun = parse_int<std::int64_t>((*fields)[5]);
  const auto used = parse_int<std::int64_t>((*fields)[6]);
  const bool local = (*fields)[2] == login_method_name(LoginMethod::kLocal);
  if (!granted || !begun || !used ||
      (!local && (*fields)[2] != login_method_name(LoginMethod::kOidc)) ||
      !is_user_name((*fields)[1])) {
    return std::nullopt;
  }
  const bool future = *begun > now + kClockSkew || *used > now + kClockSkew;
  if (future || now - *begun > limits.absolute.count() || now - *used > limits.idle.count()) {
    return std::nullopt;
  }
  return Session{.id = (*fields)[0],
                 .user = (*fields)[1],
                 .method = local ? LoginMethod::kLocal : LoginMethod::kOidc,
                 .granted = *granted,
                 .credential = (*fields)[4],
                 .begun = *begun,
                 .used = *used};
}

bool wants_renewal(const SessionLimits& limits, const Session& session, std::int64_t now) {
  constexpr std::int64_t kPart = 10;
  return now - session.used > limits.idle.count() / kPart;
}

std::string login_state_token(const Signer& signer, const LoginState& state) {
  return signer.seal(kLoginPurpose, {state.state, state.next, std::to_string(state.begun)});
}

std::optional<LoginState> parse_login_state(const Signer& signer,
                                            std::string_view token,
                                            std::string_view state,
                                            std::int64_t now) {
  constexpr std::size_t kFields = 3;
  const auto fields = signer.open(kLoginPurpose, token, kFields);
  if (!fields || state.empty() || !same_secret((*fields)[0], state)) {
    return std::nullopt;
  }
  const auto begun = parse_int<std::int64_t>((*fields)[2]);
  if (!begun || *begun > now + kClockSkew || now - *begun > kLoginTime.count()) {
    return std::nullopt;
  }
  return LoginState{.state = (*fields)[0], .next = safe_next((*fields)[1]), .begun = *begun};
}

std::string nonce_of(const Signer& signer, std::string_view state) {
  return crypto::base64url_encode(signer.signature("nonce 1", state));
}

std::string code_verifier_of(const Signer& signer, std::string_view state) {
  return crypto::base64url_encode(signer.signature("verifier 1", state));
}

std::string code_challenge_of(std::string_view verifier) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out{};
  ::SHA256(bytes_of(verifier), verifier.size(), out.data());
  return crypto::base64url_encode({reinterpret_cast<const char*>(out.data()), out.size()});
}

bool is_user_name(std::string_view name) {
  constexpr std::size_t kMaxLength = 256;
  return !name.empty() && name.size() <= kMaxLength && std::ranges::none_of(name, is_control) &&
         trim(name) == name && is_utf8(name);
}

std::string safe_next(std::string_view text) {
  constexpr std::size_t kMaxLength = 1024;
  const bool plain = std::ranges::all_of(text, [](char byte) {
    return !is_control(byte) && static_cast<unsigned char>(byte) < 0x80 && byte != ' ' &&
           byte != '\\' && byte != '"' && byte != '<' && byte != '>';
  });
  if (text.size() > kMaxLength || !plain || !text.starts_with('/')) {
    return {};
  }
  // Refuse "//" anywhere in the path, because removing dot segments could turn it into a host.
  const std::string_view path = text.substr(0, text.find_first_of("?#"));
  return path.find("//") == std::string_view::npos ? std::string(text) : std::string();
}

}  // namespace ceems::access
