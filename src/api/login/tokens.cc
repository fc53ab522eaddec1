#include "api/login/tokens.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "access/session.h"
#include "api/login/cookies.h"
#include "base/log.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "crypto/digest.h"
#include "model/protocol.h"
#include "net/cidr.h"

namespace ceems::api::login {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kSecretText = 43;  ///< of kSecretBytes in base64url
constexpr std::size_t kTokenIdBytes = 9;
/// How long the owner sees that a token has expired.
constexpr std::int64_t kShownExpired = milliseconds(std::chrono::days(30)).count();

/// The credentials of an Authorization header with the scheme Bearer (RFC 6750 §2.1); empty for
/// other schemes.
std::string_view bearer_in(std::string_view header) {
  const std::string_view scheme = take_word(header);
  return same_in_any_case(scheme, "Bearer") ? trim(header) : std::string_view();
}

/// The token of the request; empty if it is malformed, or if the request has several tokens or
/// several headers Authorization.
std::string_view token_in(const net::Request& request) {
  std::string_view token;
  int headers = 0;
  int tokens = 0;
  for (const auto& [name, value] : request.headers) {
    const bool authorization = same_in_any_case(name, "Authorization");
    const bool bare = same_in_any_case(name, model::kTokenHeader);
    headers += authorization ? 1 : 0;
    if (bare || (authorization && bearer_in(value).starts_with(kTokenPrefix))) {
      ++tokens;
      token = bare ? trim(value) : bearer_in(value);
    }
  }
  const bool formed = token.size() == kTokenPrefix.size() + kSecretText &&
                      token.starts_with(kTokenPrefix) &&
                      has_only_words(token.substr(kTokenPrefix.size()), "-_");
  return headers <= 1 && tokens == 1 && formed ? token : std::string_view();
}

/// The secret has 256 random bits, so nothing is gained by a slow hash.
std::string hash_of(std::string_view token) {
  return crypto::base64url_encode(crypto::sha256(token));
}

}  // namespace

bool has_token(const net::Request& request) {
  return std::ranges::any_of(request.headers, [](const auto& header) {
    return same_in_any_case(header.first, model::kTokenHeader) ||
           (same_in_any_case(header.first, "Authorization") &&
            bearer_in(header.second).starts_with(kTokenPrefix));
  });
}

bool has_token_in_query(const net::Request& request) {
  return request.query.contains(kTokenPrefix);
}

Tokens::Tokens(Setup setup, store::Reader& reader, const Clock& clock)
    : setup_(std::move(setup)),
      origin_(origin_of(setup_.external_url)),
      reader_(reader),
      clock_(clock) {}

void Tokens::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  writer_.reset();
}

bool Tokens::is_same_site(const net::Request& request) const {
  return login::is_same_site(request, origin_);
}

template <typename T>
Result<T> Tokens::write(const std::function<Result<T>(store::TokenWriter&)>& work) {
  const MutexLock lock(mutex_);
  if (!writer_) {
    if (closed_ || !setup_.open_writer) {
      return fail(ErrorCode::kUnavailable, "the server stops");
    }
    CEEMS_TRY(writer, setup_.open_writer());
    writer_ = std::move(writer);
  }
  auto done = work(*writer_);
  if (!done) {
    log::error("cannot write personal tokens", {{"err", done.error().message}});
  }
  return done;
}

bool Tokens::is_mixed(const net::Request& request, const std::string& owner) const {
  const auto& service = setup_.login.service_account;
  if (net::find_header(request.headers, model::kServiceTokenHeader) != nullptr ||
      (service && !service->web_user.empty() && request.authenticated_user == service->web_user)) {
    return true;
  }
  const auto named = access::user_name(request.headers, setup_.user_headers);
  return !named || (!named->empty() && setup_.login.names.apply(*named) != owner);
}

Tokens::Checked Tokens::refuse(const net::Request& request, const std::string& hash) {
  std::string forwarded;
  for (const auto& [name, value] : request.headers) {
    if (same_in_any_case(name, "X-Forwarded-For")) {
      forwarded += (forwarded.empty() ? "" : ",") + value;
    }
  }
  const std::string address =
      net::client_address(setup_.login.trusted_proxies.value_or(net::TrustedPeers{}),
                          request.remote_address, forwarded);
  // Only refused tokens are counted and slowed down. Otherwise anybody on a login node could lock
  // out the tokens of all who work there.
  const auto now = clock_.steady_now();
  if (const auto wait = attempts_.wait(hash, address, now); wait.count() > 0) {
    return {.verdict = Verdict::kTooMany, .wait = wait};
  }
  attempts_.failed(hash, address, now);
  return {};
}

Result<Tokens::Checked> Tokens::check(const net::Request& request) {
  const std::string_view token = token_in(request);
  if (token.empty()) {
    return refuse(request, "");
  }
  const std::string hash = hash_of(token);
  CEEMS_TRY(found, reader_.find_token(hash));
  const std::int64_t now_ms = clock_.now_ms();
  // The index has found the hash already; the comparison does not rely on how a database compares.
  if (!found || !access::same_secret(found->hash, hash) || found->expires_ms <= now_ms) {
    return refuse(request, hash);
  }
  if (is_mixed(request, found->username)) {
    return Checked{.verdict = Verdict::kMixed};
  }
  const auto scope = access::parse_token_scope(found->scope);
  CEEMS_TRY(owner, access::identify(reader_, setup_.login.roles, found->username));
  Checked checked{.verdict = Verdict::kGood,
                  .identity = access::with_scope(std::move(owner),
                                                 scope.value_or(access::TokenScope::kNothing))};
  if (checked.identity.user.empty()) {
    return refuse(request, hash);
  }
  note_use(*found, now_ms);
  return checked;
}

/// One request at a time writes, at most once an hour for each token. It is not refused if that
/// fails.
void Tokens::note_use(const store::Token& token, std::int64_t now_ms) {
  const bool due = now_ms - token.used_ms >= milliseconds(kUseStep).count();
  if (!due || noting_.exchange(true)) {
    return;
  }
  static_cast<void>(
      write<void>([&](store::TokenWriter& writer) { return writer.note_use(token.id, now_ms); }));
  noting_ = false;
}

Result<std::optional<Tokens::Made>> Tokens::make(const std::string& user,
                                                 const std::string& name,
                                                 access::TokenScope scope,
                                                 std::optional<std::chrono::days> lifetime) {
  const TokenOptions& limits = setup_.login.tokens;
  if (!access::is_user_name(name) || name.size() > kMaxNameBytes) {
    return fail(ErrorCode::kInvalidArgument,
                "name: expected 1 to {} bytes of UTF-8 without control characters, and without "
                "blanks at the ends",
                kMaxNameBytes);
  }
  const auto most = std::chrono::floor<std::chrono::days>(limits.max_lifetime);
  const auto wanted = lifetime.value_or(
      std::min(std::chrono::floor<std::chrono::days>(limits.default_lifetime), most));
  if (scope == access::TokenScope::kNothing) {
    return fail(ErrorCode::kInvalidArgument, "scope: expected 'read-own' or 'read-led'");
  }
  if (wanted < std::chrono::days(1) || wanted > most) {
    return fail(ErrorCode::kInvalidArgument, "days: expected a number from 1 to {}", most.count());
  }
  const std::int64_t now_ms = clock_.now_ms();
  Made made;
  made.secret =
      std::string(kTokenPrefix) + crypto::base64url_encode(crypto::random_bytes(kSecretBytes));
  made.token = {.id = crypto::base64url_encode(crypto::random_bytes(kTokenIdBytes)),
                .hash = hash_of(made.secret),
                .username = user,
                .name = name,
                .scope = std::string(access::token_scope_name(scope)),
                .created_ms = now_ms,
                .expires_ms = now_ms + milliseconds(wanted).count()};
  CEEMS_TRY(added, write<bool>([&](store::TokenWriter& writer) -> Result<bool> {
              CEEMS_TRY(writer.remove_expired(user, now_ms - kShownExpired));
              return writer.add(made.token, kMaxPerUser);
            }));
  return added ? std::optional(std::move(made)) : std::nullopt;
}

Result<std::optional<std::string>> Tokens::revoke(const std::string& id,
                                                  const std::optional<std::string>& user) {
  return write<std::optional<std::string>>(
      [&](store::TokenWriter& writer) { return writer.remove(id, user); });
}

}  // namespace ceems::api::login
