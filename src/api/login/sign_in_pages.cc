// The login and logout pages of SignIn.
#include <algorithm>
#include <utility>

#include "access/jwt.h"
#include "api/answer/envelope.h"
#include "api/answer/pages.h"
#include "api/login/pages.h"
#include "api/login/sign_in.h"
#include "base/log.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "crypto/digest.h"
#include "model/protocol.h"

namespace ceems::api::login {
namespace {

using std::chrono::seconds;

constexpr std::string_view kStateCookie = "ceems_oidc";
constexpr int kForbidden = 403;
constexpr int kTooMany = 429;
constexpr int kUnavailable = 503;
constexpr int kUnauthorized = 401;
constexpr int kBadRequest = 400;

std::string first_of(const std::vector<std::pair<std::string, std::string>>& fields,
                     std::string_view name) {
  const auto found =
      std::ranges::find_if(fields, [name](const auto& field) { return field.first == name; });
  return found == fields.end() ? std::string() : found->second;
}

bool wants_json(const net::Request& request) {
  const std::string* accepted = net::find_header(request.headers, "Accept");
  return accepted != nullptr && accepted->find("application/json") != std::string::npos;
}

ApiErrorType error_type(int status) {
  switch (status) {
    case kUnauthorized:
      return ApiErrorType::kUnauthorized;
    case kForbidden:
      return ApiErrorType::kForbidden;
    case kBadRequest:
      return ApiErrorType::kBadData;
    default:
      return ApiErrorType::kTimeout;
  }
}

void refuse_json(net::Response& response, int status, std::string_view text) {
  answer_error(response, error_type(status), text);
  response.status = status;
  response.set_header("Cache-Control", "no-store");
}

/// Limits the number of threads that wait for the network, so that others remain for other
/// requests.
class InFlight {
 public:
  InFlight(std::atomic<int>& count, int limit)
      : count_(count), admitted_(count_.fetch_add(1) < limit) {}
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight() { count_.fetch_sub(1); }
  [[nodiscard]] bool admitted() const { return admitted_; }

 private:
  std::atomic<int>& count_;
  bool admitted_ = false;
};

constexpr int kMaxExchanges = 2;

}  // namespace

/// The fields of the login form.
struct SignIn::Form {
  std::string user, password, next;
};

bool SignIn::has_page(std::string_view method, std::string_view path) const {
  if (!signer_) {
    return false;
  }
  if (path == "/login") {
    return method == "GET" || (method == "POST" && users_ != nullptr);
  }
  if (path == "/logout") {
    return method == "POST";
  }
  return method == "GET" && provider_ != nullptr &&
         (path == "/login/oidc" || path == "/login/callback");
}

void SignIn::answer_page(std::string_view path,
                         const net::Request& request,
                         net::Response& response) {
  if (path == "/logout") {
    log_out(request, response);
  } else if (path == "/login/oidc") {
    begin_oidc(request, response);
  } else if (path == "/login/callback") {
    end_oidc(request, response);
  } else if (request.method == "POST") {
    log_in(request, response);
  } else {
    show_login(request, response);
  }
}

std::string SignIn::client_of(const net::Request& request) const {
  std::string forwarded;
  for (const auto& [name, value] : request.headers) {
    if (to_lower(name) == "x-forwarded-for") {
      forwarded += (forwarded.empty() ? "" : ",") + value;
    }
  }
  return net::client_address(options_.trusted_proxies.value_or(net::TrustedPeers{}),
                             request.remote_address, forwarded);
}

/// Reads the form. Returns nothing after answering a request that has no form or comes from another
/// site.
std::optional<SignIn::Form> SignIn::read_form(const net::Request& request,
                                              net::Response& response) const {
  constexpr std::size_t kMaxFormBytes = 8192;
  const auto refuse = [&](int status, std::string_view text) {
    if (wants_json(request)) {
      refuse_json(response, status, text);
    } else {
      answer_notice(response, status, base(), text);
    }
    return std::nullopt;
  };
  const std::string* type = net::find_header(request.headers, "Content-Type");
  if (type == nullptr || !type->starts_with("application/x-www-form-urlencoded") ||
      request.body.size() > kMaxFormBytes) {
    return refuse(kBadRequest, "expected a form");
  }
  if (!is_same_site(request, external_origin_)) {
    return refuse(kForbidden, "the request comes from another site");
  }
  const auto fields = net::parse_query(request.body);
  if (!is_form_token(request, first_of(fields, "token"))) {
    return refuse(kForbidden, "the form is too old; load the page again");
  }
  return Form{.user = first_of(fields, "user"),
              .password = first_of(fields, "password"),
              .next = access::safe_next(first_of(fields, "next"))};
}

void SignIn::show_login(const net::Request& request, net::Response& response) {
  const std::string next = access::safe_next(first_of(net::parse_query(request.query), "next"));
  answer_login_page(response, 200,
                    {.base = base(),
                     .next = next,
                     .token = form_token(request, response),
                     .local = users_ != nullptr,
                     .provider = provider_ != nullptr ? provider_->options().name : "",
                     .user = {},
                     .trouble = {}});
}

void SignIn::begin_session(access::Session session,
                           const std::string& next,
                           const net::Request& request,
                           net::Response& response) {
  session.id = crypto::random_bytes(
      kRandomIdBytes);  // a new id, so that an id from before the login is of no use
  session.begun = session.used = now_seconds();
  if (wants_json(request)) {
    answer_data(response, "null");
    response.set_header("Cache-Control", "no-store");
  } else {
    answer_redirect(response, next.empty() ? home() : next);
  }
  set_cookie(response, cookie_scope(request), kSessionCookie,
             access::session_token(*signer_, session), options_.session.idle);
}

void SignIn::log_in(const net::Request& request, net::Response& response) {
  const auto form = read_form(request, response);
  if (!form) {
    return;
  }
  const std::string address = client_of(request);
  const auto refuse = [&](int status, const std::string& text, std::chrono::seconds wait) {
    if (wants_json(request)) {
      refuse_json(response, status, text);
    } else {
      answer_login_page(response, status,
                        {.base = base(),
                         .next = form->next,
                         .token = form_token(request, response),
                         .local = true,
                         .provider = provider_ != nullptr ? provider_->options().name : "",
                         .user = access::is_user_name(form->user) ? form->user : "",
                         .trouble = text});
    }
    if (wait.count() > 0) {
      response.set_header("Retry-After", std::to_string(wait.count()));
    }
  };
  // Invalid names are counted together, so that long names use no memory.
  const std::string counted = access::is_user_name(form->user) ? form->user : "";
  if (const auto wait = attempts_.wait(counted, address, clock_.steady_now()); wait.count() > 0) {
    refuse(kTooMany, "Too many attempts. Try again later.", wait);
    return;
  }
  auto verdict = users_->check(form->user, form->password);
  if (verdict == LocalUsers::Verdict::kBusy) {
    refuse(kUnavailable, "The server is busy. Try again.", seconds(1));
    return;
  }
  if (form->user == model::kServiceAccount) {
    verdict = LocalUsers::Verdict::kWrong;  // an account for programs, which has no password
  }
  const auto table = users_->users();
  const auto user = table->find(form->user);
  if (verdict != LocalUsers::Verdict::kGood || user == table->end()) {
    attempts_.failed(counted, address, clock_.steady_now());
    // An unknown name is not logged, because it may be a password in the wrong field.
    log::info("login refused",
              {{"user", user == table->end() ? "(unknown)" : printable(form->user)},
               {"address", printable(address)}});
    refuse(kUnauthorized, "User name or password is wrong.", seconds(0));
    return;
  }
  attempts_.succeeded(counted, address);
  log::info("logged in", {{"user", printable(form->user)}, {"way", "local"}});
  begin_session({.user = form->user,
                 .method = access::LoginMethod::kLocal,
                 .credential = credential_of(user->second)},
                form->next, request, response);
}

void SignIn::log_out(const net::Request& request, net::Response& response) {
  if (!read_form(request, response)) {
    return;
  }
  if (const auto session = find_session(request); session) {
    ended_.add(session->id, session->begun + options_.session.absolute.count(), now_seconds());
    log::info("logged out", {{"user", printable(session->user)}});
  }
  if (wants_json(request)) {
    answer_data(response, "null");
    response.set_header("Cache-Control", "no-store");
  } else {
    answer_redirect(response, home());
  }
  set_cookie(response, cookie_scope(request), kSessionCookie, "", seconds(0));
}

void SignIn::refuse_oidc(net::Response& response, const net::Request& request, const Error& error) {
  const bool refused = error.code == ErrorCode::kPermissionDenied;
  log::warn("login at the provider failed",
            {{"err", error.message}, {"address", printable(client_of(request))}});
  answer_notice(
      response, refused ? kForbidden : kUnavailable, base(),
      refused ? "The login was refused." : "The login server does not respond. Try again.");
}

void SignIn::begin_oidc(const net::Request& request, net::Response& response) {
  const InFlight exchange(exchanges_, kMaxExchanges);
  if (!exchange.admitted()) {
    answer_notice(response, kUnavailable, base(), "The server is busy. Try again.");
    return;
  }
  const access::LoginState state{
      .state = crypto::base64url_encode(crypto::random_bytes(kRandomIdBytes)),
      .next = access::safe_next(first_of(net::parse_query(request.query), "next")),
      .begun = now_seconds()};
  const std::string verifier = access::code_verifier_of(*signer_, state.state);
  const auto url = provider_->authorization_url(redirect_url_, state.state,
                                                access::nonce_of(*signer_, state.state),
                                                access::code_challenge_of(verifier));
  if (!url) {
    refuse_oidc(response, request, url.error());
    return;
  }
  answer_redirect(response, *url);
  set_cookie(response, cookie_scope(request), kStateCookie,
             access::login_state_token(*signer_, state), access::kLoginTime);
}

void SignIn::end_oidc(const net::Request& request, net::Response& response) {
  const auto query = net::parse_query(request.query);
  const std::string state = first_of(query, "state");
  std::optional<access::LoginState> begun;
  for (const std::string& token : cookies(request, kStateCookie)) {
    if (!begun) {
      begun = access::parse_login_state(*signer_, token, state, now_seconds());
    }
  }
  if (!begun || !redeemed_.add(state, begun->begun + access::kLoginTime.count(), now_seconds())) {
    answer_notice(response, kForbidden, base(),
                  "This login was not started in this browser, or it has expired. Start again.");
    return;
  }
  const CookieScope scope = cookie_scope(request);
  const std::string code = first_of(query, "code");
  const InFlight exchange(exchanges_, kMaxExchanges);
  Result<access::Claims> claims = fail(ErrorCode::kPermissionDenied, "the provider sent no code");
  if (!exchange.admitted()) {
    claims = fail(ErrorCode::kUnavailable, "too many logins at once");
  } else if (!code.empty()) {
    claims = provider_->redeem(code, redirect_url_, access::code_verifier_of(*signer_, state),
                               access::nonce_of(*signer_, state));
  } else if (const std::string error = first_of(query, "error"); !error.empty()) {
    claims = fail(ErrorCode::kPermissionDenied, "the provider reports '{}'", printable(error, 60));
  }
  if (claims && claims->user == model::kServiceAccount) {
    claims = fail(ErrorCode::kPermissionDenied, "the provider names the service account");
  }
  if (!claims) {
    refuse_oidc(response, request, claims.error());
  } else {
    log::info("logged in", {{"user", printable(claims->user)}, {"way", "oidc"}});
    begin_session({.user = claims->user,
                   .method = access::LoginMethod::kOidc,
                   .granted = provider_->role_of(*claims),
                   .credential = credential_of(provider_->options().issuer)},
                  begun->next, request, response);
  }
  set_cookie(response, scope, kStateCookie, "", seconds(0));
}

}  // namespace ceems::api::login
