#include "api/login/sign_in.h"

#include <algorithm>
#include <utility>

#include "api/answer/envelope.h"
#include "api/login/key_file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "crypto/digest.h"
#include "os/secret.h"
#include "store/json.h"

namespace ceems::api::login {
namespace {

using std::chrono::seconds;

constexpr std::string_view kFormCookie = "ceems_form";
constexpr std::string_view kFormCookiePurpose = "form cookie 1";
constexpr std::string_view kFormPurpose = "form 1";
constexpr seconds kFormTime{12 * 3600};
constexpr std::int64_t kClockSkew = 60;
constexpr std::size_t kMaxRemembered = 10'000;
constexpr std::size_t kMinTokenBytes = 32;

Result<> read_shared_token(const std::string& file, std::string& token) {
  CEEMS_TRY(secret, os::read_secret("", file));
  if (secret.size() < kMinTokenBytes) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected at least {} characters", file,
                kMinTokenBytes);
  }
  token = std::move(secret);
  return {};
}

/// The id in a form cookie; empty if the cookie is missing or invalid.
std::string form_id(const access::Signer& signer,
                    const std::vector<std::string>& cookies,
                    std::int64_t now) {
  for (const std::string& value : cookies) {
    const auto fields = signer.open(kFormCookiePurpose, value, 2);
    if (!fields) {
      continue;
    }
    const auto begun = parse_int<std::int64_t>((*fields)[1]);
    if (begun && *begun <= now + kClockSkew && now - *begun < kFormTime.count()) {
      return (*fields)[0];
    }
  }
  return {};
}

}  // namespace

bool ExpiringSet::add(const std::string& text, std::int64_t ends, std::int64_t now) {
  const MutexLock lock(mutex_);
  if (expiry_.contains(text)) {
    return false;
  }
  if (expiry_.size() >= limit_) {
    std::erase_if(expiry_, [now](const auto& entry) { return entry.second < now; });
  }
  if (expiry_.size() >= limit_) {
    expiry_.erase(
        std::ranges::min_element(expiry_, {}, [](const auto& entry) { return entry.second; }));
  }
  expiry_.emplace(text, ends);
  return true;
}

bool ExpiringSet::contains(const std::string& text) const {
  const MutexLock lock(mutex_);
  return expiry_.contains(text);
}

SignIn::SignIn(LoginOptions options,
               Deployment deployment,
               store::Reader& reader,
               const Clock& clock)
    : options_(std::move(options)),
      deployment_(std::move(deployment)),
      external_origin_(origin_of(deployment_.external_url)),
      external_path_(path_of(deployment_.external_url)),
      reader_(reader),
      clock_(clock),
      ended_(kMaxRemembered),
      redeemed_(kMaxRemembered) {}

SignIn::~SignIn() = default;

Result<std::unique_ptr<SignIn>> SignIn::create(LoginOptions options,
                                               Deployment deployment,
                                               store::Reader& reader,
                                               const Clock& clock) {
  while (deployment.route_prefix.ends_with('/')) {
    deployment.route_prefix.pop_back();
  }
  std::unique_ptr<SignIn> made(
      new SignIn(std::move(options), std::move(deployment), reader, clock));
  const LoginOptions& wanted = made->options_;
  if (wanted.service_account && !wanted.service_account->token_file.empty()) {
    CEEMS_TRY_IN("identity.service_account.token_file",
                 read_shared_token(wanted.service_account->token_file, made->service_token_));
  }
  if (!wanted.proxy_token_file.empty()) {
    CEEMS_TRY_IN("identity.header.proxy_token_file",
                 read_shared_token(wanted.proxy_token_file, made->proxy_token_));
  }
  if (!wanted.has_sessions()) {
    return made;
  }
  if (!made->deployment_.external_url.empty() && made->external_origin_.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--web.external-url: expected an http or https URL");
  }
  CEEMS_TRY(key, wanted.session_key_file.empty()
                     ? read_or_make_key(made->deployment_.data_directory + "/ceems-session.key")
                     : read_key(wanted.session_key_file));
  CEEMS_TRY(signer, access::Signer::create(std::move(key)));
  made->signer_ = std::make_unique<const access::Signer>(std::move(signer));
  if (wanted.local) {
    CEEMS_TRY_IN("identity.local.users_file", users, LocalUsers::open(wanted.local->users_file));
    made->users_ = std::move(users);
  }
  if (wanted.oidc) {
    made->redirect_url_ = wanted.oidc->redirect_url;
    if (made->redirect_url_.empty() && !made->external_origin_.empty()) {
      made->redirect_url_ = made->external_origin_ + made->base() + "/login/callback";
    }
    if (!is_provider_url(made->redirect_url_)) {
      return fail(
          ErrorCode::kInvalidArgument,
          "identity.oidc: set redirect_url, or --web.external-url to the https address that "
          "browsers see");
    }
    CEEMS_TRY(provider, Provider::create(*wanted.oidc, clock));
    made->provider_ = std::move(provider);
  }
  return made;
}

std::int64_t SignIn::now_seconds() const {
  return std::chrono::duration_cast<seconds>(clock_.now().time_since_epoch()).count();
}

std::string SignIn::base() const {
  return external_path_.empty() ? deployment_.route_prefix : external_path_;
}

std::string SignIn::home() const {
  return base() + "/";
}

CookieScope SignIn::cookie_scope(const net::Request& request) const {
  return {.path = home(), .secure = request.tls || external_origin_.starts_with("https://")};
}

std::vector<std::string> SignIn::cookies(const net::Request& request, std::string_view name) const {
  return cookie_values(request.headers, cookie_name(cookie_scope(request), name));
}

void SignIn::report_refused_name(const net::Request& request, std::string_view why) {
  constexpr std::int64_t kPause = 60;
  const std::int64_t now = now_seconds();
  std::int64_t last = last_report_.load();
  if ((last == 0 || now - last >= kPause || now < last) &&
      last_report_.compare_exchange_strong(last, now)) {
    log::warn(why, {{"peer", printable(request.remote_address)}});
  }
}

bool SignIn::is_alive(const access::Session& session) const {
  if (ended_.contains(session.id)) {
    return false;
  }
  if (session.method == access::LoginMethod::kOidc) {
    return provider_ != nullptr &&
           access::same_secret(session.credential, credential_of(provider_->options().issuer));
  }
  if (users_ == nullptr) {
    return false;
  }
  const auto table = users_->users();
  const auto user = table->find(session.user);
  return user != table->end() &&
         access::same_secret(session.credential, credential_of(user->second));
}

/// Identifies the password hash, or the provider and the roles of its groups, without revealing
/// them. A session ends when this text changes.
std::string SignIn::credential_of(const std::string& hash) const {
  constexpr std::size_t kBytes = 12;
  std::string text = hash;
  if (provider_ != nullptr && hash == provider_->options().issuer) {
    const OidcOptions& oidc = provider_->options();
    text += "\n" + oidc.client_id + "\n" + oidc.groups_claim + "\n" +
            store::string_list_text(oidc.admin_groups) +
            store::string_list_text(oidc.support_groups);
  }
  return signer_->signature("credential 1", text).substr(0, kBytes);
}

std::optional<access::Session> SignIn::find_session(const net::Request& request) const {
  if (!signer_) {
    return std::nullopt;
  }
  for (const std::string& token : cookies(request, kSessionCookie)) {
    auto session = access::parse_session(*signer_, options_.session, token, now_seconds());
    if (session && is_alive(*session)) {
      return session;
    }
  }
  return std::nullopt;
}

bool SignIn::has_service_credential(const net::Request& request) const {
  if (!options_.service_account) {
    return false;
  }
  const std::string& web_user = options_.service_account->web_user;
  if (!web_user.empty() && request.authenticated_user == web_user) {
    return true;
  }
  const std::string* token = net::find_header(request.headers, model::kServiceTokenHeader);
  return token != nullptr && !service_token_.empty() && access::same_secret(*token, service_token_);
}

/// Whether the request is of a proxy that may name users.
bool SignIn::is_of_proxy(const net::Request& request) const {
  if (!options_.trusted_proxies) {
    return true;
  }
  const std::string* token = net::find_header(request.headers, model::kProxyTokenHeader);
  return options_.trusted_proxies->contains(request.remote_address) &&
         (proxy_token_.empty() || (token != nullptr && access::same_secret(*token, proxy_token_)));
}

Result<access::Identity> SignIn::identify(const net::Request& request, net::Response& response) {
  const bool service = has_service_credential(request);
  if (options_.header || service) {
    auto named = access::user_name(request.headers, deployment_.user_headers);
    if (!named) {
      return access::Identity{};
    }
    if (!named->empty()) {
      if (*named == model::kServiceAccount && options_.guards_service_account()) {
        report_refused_name(request,
                            "a request names the service account by header; refused: set "
                            "identity.service_account in the configuration of both programs");
        return access::Identity{};
      }
      if (!service && !is_of_proxy(request)) {
        report_refused_name(request,
                            proxy_token_.empty()
                                ? "a request names a user by header, but its peer is not in "
                                  "trusted_proxies; refused"
                                : "a request names a user by header, but its peer is not in "
                                  "trusted_proxies or does not send the token of "
                                  "proxy_token_file; refused");
        return access::Identity{};
      }
      // The service account passes on names that are mapped already.
      return access::identify(reader_, options_.roles,
                              service ? *std::move(named) : options_.names.apply(*named));
    }
    if (service) {
      return access::identify(reader_, options_.roles, std::string(model::kServiceAccount));
    }
  }
  auto session = find_session(request);
  if (!session) {
    return access::Identity{};
  }
  const std::int64_t now = now_seconds();
  if (access::wants_renewal(options_.session, *session, now)) {
    session->used = now;
    set_cookie(response, cookie_scope(request), kSessionCookie,
               access::session_token(*signer_, *session), options_.session.idle);
  }
  return access::identify(reader_, options_.roles, session->user, session->granted);
}

std::string SignIn::form_token(const net::Request& request, net::Response& response) {
  std::string id;
  if (const auto session = find_session(request); session) {
    id = session->id;
  } else {
    const std::int64_t now = now_seconds();
    id = form_id(*signer_, cookies(request, kFormCookie), now);
    if (id.empty()) {
      id = crypto::random_bytes(kRandomIdBytes);
      set_cookie(response, cookie_scope(request), kFormCookie,
                 signer_->seal(kFormCookiePurpose, {id, std::to_string(now)}), kFormTime);
    }
  }
  return crypto::base64url_encode(signer_->signature(kFormPurpose, id));
}

bool SignIn::is_form_token(const net::Request& request, const std::string& token) const {
  const auto of = [this](const std::string& id) {
    return crypto::base64url_encode(signer_->signature(kFormPurpose, id));
  };
  if (const auto session = find_session(request);
      session && access::same_secret(token, of(session->id))) {
    return true;
  }
  const std::string id = form_id(*signer_, cookies(request, kFormCookie), now_seconds());
  return !id.empty() && access::same_secret(token, of(id));
}

std::string SignIn::login_methods_json(const net::Request& request, net::Response& response) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("header");
  // The page may ask for a name only if every peer may name users by header.
  if (options_.header && !options_.trusted_proxies && !deployment_.user_headers.empty()) {
    json.value(deployment_.user_headers.front());
  } else {
    json.value(nullptr);
  }
  json.member("local", users_ != nullptr).key("oidc");
  if (provider_ != nullptr) {
    json.value(provider_->options().name);
  } else {
    json.value(nullptr);
  }
  if (!deployment_.site_name.empty()) {
    json.member("site", deployment_.site_name);
  }
  json.member("token", signer_ ? form_token(request, response) : "").end_object();
  return text;
}

std::string SignIn::whoami(const net::Request& request, const access::Identity& identity) {
  const bool service = has_service_credential(request);
  const bool by_header = (options_.header || service) &&
                         access::user_name(request.headers, deployment_.user_headers) != "";
  const auto session = by_header || service ? std::nullopt : find_session(request);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("user", identity.user);
  json.member("admin", identity.role == access::Role::kAdmin);
  json.member("role", access::role_name(identity.role));
  json.member("via", session                 ? access::login_method_name(session->method)
                     : service && !by_header ? "service_account"
                                             : "header");
  json.key("led").begin_array();
  for (const store::ClusterProject& led : identity.led) {
    json.begin_object().member("cluster_id", led.cluster_id);
    json.member("project", led.project).end_object();
  }
  json.end_array();
  net::Response unused;
  json.raw_member("login", login_methods_json(request, unused)).end_object();
  return text;
}

void SignIn::answer_anonymous(const net::Request& request, net::Response& response) {
  answer_nobody(response, login_methods_json(request, response));
}

void SignIn::answer_unauthenticated(const net::Request& request, net::Response& response) {
  answer_error(response, ApiErrorType::kUnauthorized, "no user identified",
               login_methods_json(request, response));
}

}  // namespace ceems::api::login
