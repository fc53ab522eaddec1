#include "api/login/oidc.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "access/session.h"
#include "api/login/cookies.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "net/client/client.h"
#include "net/http.h"
#include "os/secret.h"

namespace ceems::api::login {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyTime = Clock::SteadyTime;

constexpr seconds kCacheTime{3600};
constexpr seconds kRetryAfter{10};
constexpr seconds kMinKeyInterval{30};
constexpr milliseconds kTimeout{10'000};
constexpr milliseconds kPatience{3000};  // while another thread waits for the provider
constexpr milliseconds kPoll{5};
constexpr int kOk = 200;

bool is_this_machine(std::string_view origin) {
  for (const std::string_view host : {"http://localhost", "http://127.0.0.1", "http://[::1]"}) {
    if (origin == host || (origin.starts_with(host) && origin[host.size()] == ':')) {
      return true;
    }
  }
  return false;
}

/// True if the URL contains nothing that could end a header or an HTML attribute.
bool is_plain(const std::string& url) {
  return std::ranges::all_of(
      url, [](char byte) { return byte > ' ' && byte < 0x7F && byte != '"' && byte != '\\'; });
}

/// Encodes name=value pairs for a form or a query.
std::string form_of(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  std::string form;
  for (const auto& [name, value] : fields) {
    form += (form.empty() ? "" : "&") + net::url_encode(name) + "=" + net::url_encode(value);
  }
  return form;
}

/// A cached answer of the provider.
template <typename T>
struct Cached {
  std::optional<T> value;
  SteadyTime asked = {};
  std::optional<Error> failure;  ///< of the last request; empty: it succeeded
};

}  // namespace

bool is_provider_url(const std::string& url) {
  const std::string origin = origin_of(url);
  return is_plain(url) && url.find_first_of("?#@") == std::string::npos &&
         (origin.starts_with("https://") || is_this_machine(origin));
}

struct Provider::Impl {
  OidcOptions options;
  const Clock* clock = nullptr;
  std::unique_ptr<net::Client> client;

  Mutex mutex;
  Cached<access::ProviderMetadata> metadata CEEMS_GUARDED_BY(mutex);
  Cached<std::vector<access::Jwk>> keys CEEMS_GUARDED_BY(mutex);

  Result<std::string> ask(const std::string& url) {
    CEEMS_TRY(answer, client->get(url, {{"Accept", "application/json"}}));
    if (answer.status != kOk) {
      return fail(ErrorCode::kUnavailable, "GET {}: status {}", printable(url, 200), answer.status);
    }
    return std::move(answer.body);
  }

  Result<access::ProviderMetadata> discover() {
    std::string url = options.issuer;
    while (url.ends_with('/')) {
      url.pop_back();
    }
    url += "/.well-known/openid-configuration";
    CEEMS_TRY(text, ask(url));
    CEEMS_TRY_IN(url, found, access::parse_provider_metadata(text));
    // Otherwise any server could claim to be the issuer (OpenID Connect Discovery §4.3).
    if (found.issuer != options.issuer) {
      return fail(ErrorCode::kParse,
                  "{}: the issuer in the metadata differs from the configured one", url);
    }
    for (const std::string* part : {&found.token_endpoint, &found.jwks_uri}) {
      if (!is_provider_url(*part)) {
        return fail(ErrorCode::kParse, "{}: expected https URLs", url);
      }
    }
    // The authorization endpoint may have a query (RFC 6749 §3.1).
    const std::string& page = found.authorization_endpoint;
    if (!is_plain(page) || page.find('#') != std::string::npos ||
        !is_provider_url(page.substr(0, page.find('?')))) {
      return fail(ErrorCode::kParse, "{}: expected https URLs", url);
    }
    return found;
  }

  /// Returns the cached value, or fetches it if it is too old.
  template <typename T, typename Ask>
  Result<T> fetch(Cached<T>& cached, const Ask& ask_now) CEEMS_REQUIRES(mutex) {
    const SteadyTime now = clock->steady_now();
    if (cached.value && now - cached.asked < kCacheTime) {
      return *cached.value;
    }
    if (cached.failure && now - cached.asked < kRetryAfter) {
      return fail(*cached.failure);
    }
    auto answer = ask_now();
    cached.asked = now;
    if (!answer) {
      cached.failure = answer.error();
      return fail(std::move(answer).error());
    }
    cached.failure.reset();
    cached.value = *answer;
    return answer;
  }

  /// Takes the mutex, or fails if another thread holds it for longer than kPatience.
  bool lock_in_time() CEEMS_THREAD_ATTRIBUTE(try_acquire_capability(true, mutex)) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!mutex.try_lock()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return false;
      }
      std::this_thread::sleep_for(kPoll);
    }
    return true;
  }

  static std::unexpected<Error> busy() {
    return fail(ErrorCode::kTimeout, "another request is waiting for the provider");
  }

  Result<access::ProviderMetadata> current_metadata() CEEMS_EXCLUDES(mutex) {
    if (!lock_in_time()) {
      return busy();
    }
    const MutexLock lock(mutex, kAdoptLock);
    return fetch(metadata, [this] { return discover(); });
  }

  Result<std::vector<access::Jwk>> current_keys(const access::ProviderMetadata& provider,
                                                bool renew) CEEMS_EXCLUDES(mutex) {
    if (!lock_in_time()) {
      return busy();
    }
    const MutexLock lock(mutex, kAdoptLock);
    if (renew && clock->steady_now() - keys.asked >= kMinKeyInterval) {
      keys.value.reset();
    }
    return fetch(keys, [&]() -> Result<std::vector<access::Jwk>> {
      CEEMS_TRY(text, ask(provider.jwks_uri));
      return access::parse_jwks(text);
    });
  }

  Result<std::string> exchange(const access::ProviderMetadata& provider,
                               const std::string& code,
                               std::string_view redirect_url,
                               std::string_view code_verifier) {
    std::string form = form_of({{"grant_type", "authorization_code"},
                                {"code", code},
                                {"redirect_uri", redirect_url},
                                {"code_verifier", code_verifier}});
    net::Headers headers{{"Accept", "application/json"}};
    if (options.client_secret_file.empty()) {
      form += "&" + form_of({{"client_id", options.client_id}});
    } else {
      CEEMS_TRY(secret, os::read_secret({}, options.client_secret_file));
      if (provider.secret_in_form) {
        form += "&" + form_of({{"client_id", options.client_id}, {"client_secret", secret}});
      } else {  // RFC 6749 §2.3.1
        headers.emplace_back("Authorization",
                             "Basic " + crypto::base64_encode(net::url_encode(options.client_id) +
                                                              ":" + net::url_encode(secret)));
      }
    }
    CEEMS_TRY(answer, client->post(provider.token_endpoint, "application/x-www-form-urlencoded",
                                   form, headers));
    if (answer.status == 400 || answer.status == 401) {  // RFC 6749 §5.2
      return fail(ErrorCode::kPermissionDenied, "POST {}: status {}",
                  printable(provider.token_endpoint, 200), answer.status);
    }
    if (answer.status != kOk) {
      return fail(ErrorCode::kUnavailable, "POST {}: status {}",
                  printable(provider.token_endpoint, 200), answer.status);
    }
    CEEMS_TRY_IN("POST " + provider.token_endpoint, token, access::parse_id_token(answer.body));
    return token;
  }

  /// Fetches the keys again if the key of the token is unknown.
  Result<> check_signature(const access::ProviderMetadata& provider, const access::Jwt& token) {
    Result<> done;
    for (const bool renew : {false, true}) {
      CEEMS_TRY(known, current_keys(provider, renew));
      done = access::verify_signature(token, known);
      if (done || done.error().code != ErrorCode::kNotFound) {
        return done;
      }
    }
    return fail(ErrorCode::kPermissionDenied, "{}", done.error().message);
  }
};

Result<std::unique_ptr<Provider>> Provider::create(OidcOptions options, const Clock& clock) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
  auto impl = std::make_unique<Impl>();
  net::ClientOptions http = options.http;
  http.follow_redirects = false;  // a redirect could leak the code
  http.timeout = std::min(http.timeout, kTimeout);
  http.max_response_bytes = kMaxBytes;
  CEEMS_TRY_IN("identity.oidc.http_client", client, net::Client::create(std::move(http)));
  impl->client = std::move(client);
  impl->options = std::move(options);
  impl->clock = &clock;
  return std::unique_ptr<Provider>(new Provider(std::move(impl)));
}

Provider::Provider(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Provider::~Provider() = default;

const OidcOptions& Provider::options() const {
  return impl_->options;
}

Result<std::string> Provider::authorization_url(std::string_view redirect_url,
                                                std::string_view state,
                                                std::string_view nonce,
                                                std::string_view code_challenge) {
  CEEMS_TRY(provider, impl_->current_metadata());
  std::string scopes;
  for (const std::string& scope : impl_->options.scopes) {
    scopes += (scopes.empty() ? "" : " ") + scope;
  }
  const std::string& page = provider.authorization_endpoint;
  return page + (page.find('?') == std::string::npos ? "?" : "&") +
         form_of({{"response_type", "code"},
                  {"client_id", impl_->options.client_id},
                  {"redirect_uri", redirect_url},
                  {"scope", scopes},
                  {"state", state},
                  {"nonce", nonce},
                  {"code_challenge", code_challenge},
                  {"code_challenge_method", "S256"}});
}

Result<access::Claims> Provider::redeem(const std::string& code,
                                        std::string_view redirect_url,
                                        std::string_view code_verifier,
                                        const std::string& nonce) {
  CEEMS_TRY(provider, impl_->current_metadata());
  CEEMS_TRY(text, impl_->exchange(provider, code, redirect_url, code_verifier));
  const auto token = access::parse_jwt(text);
  if (!token) {
    return fail(ErrorCode::kPermissionDenied, "{}", token.error().message);
  }
  CEEMS_TRY(impl_->check_signature(provider, *token));
  const auto now = std::chrono::duration_cast<seconds>(impl_->clock->now().time_since_epoch());
  return access::check_claims(token->claims, {.issuer = impl_->options.issuer,
                                              .client_id = impl_->options.client_id,
                                              .nonce = nonce,
                                              .user_claim = impl_->options.username_claim,
                                              .sub_instead = impl_->options.sub_fallback,
                                              .groups_claim = impl_->options.groups_claim,
                                              .now = now.count()});
}

access::Role Provider::role_of(const access::Claims& claims) const {
  const auto in_one_of = [&claims](const std::vector<std::string>& groups) {
    return std::ranges::any_of(groups, [&claims](const std::string& group) {
      return std::ranges::find(claims.groups, group) != claims.groups.end();
    });
  };
  if (in_one_of(impl_->options.admin_groups)) {
    return access::Role::kAdmin;
  }
  return in_one_of(impl_->options.support_groups) ? access::Role::kSupport : access::Role::kUser;
}

}  // namespace ceems::api::login
