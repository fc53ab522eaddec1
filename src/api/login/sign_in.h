#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "access/policy.h"
#include "access/session.h"
#include "api/login/attempts.h"
#include "api/login/config.h"
#include "api/login/cookies.h"
#include "api/login/local_users.h"
#include "api/login/oidc.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "model/protocol.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api::login {

/// The settings of the server that logins depend on.
struct Deployment {
  std::vector<std::string> user_headers = {std::string(model::kUserHeader)};
  std::string route_prefix = {};    ///< without a trailing slash
  std::string external_url = {};    ///< --web.external-url; may be empty
  std::string data_directory = {};  ///< contains the session key
  std::string site_name = {};       ///< ui.name, which the log-in page shows; may be empty
};

/// A set of texts that expire. If it is full, those that expire first are removed. Safe for
/// concurrent use.
class ExpiringSet {
 public:
  explicit ExpiringSet(std::size_t limit) : limit_(limit) {}
  /// Returns false if the set already contains the text.
  bool add(const std::string& text, std::int64_t ends, std::int64_t now);
  [[nodiscard]] bool contains(const std::string& text) const;

 private:
  const std::size_t limit_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::int64_t> expiry_ CEEMS_GUARDED_BY(mutex_);
};

inline constexpr std::string_view kSessionCookie = "ceems_session";
inline constexpr std::size_t kRandomIdBytes = 16;  ///< of sessions, and of logins under way

/// Identifies the caller of a request and serves the login pages (docs/api/access.md, "Who asks").
/// Safe for concurrent use.
class SignIn {
 public:
  /// `reader` and `clock` must outlive it. Fails if the file of users or the key is invalid, or if
  /// OpenID Connect has no redirect URL.
  static Result<std::unique_ptr<SignIn>> create(LoginOptions options,
                                                Deployment deployment,
                                                store::Reader& reader,
                                                const Clock& clock);
  ~SignIn();
  SignIn(const SignIn&) = delete;
  SignIn& operator=(const SignIn&) = delete;

  /// The user who sends the request; without a name if in doubt. With the credential of the service
  /// account, that is the user named in the header, or the service account if it names none.
  /// Without, a header from a trusted peer comes first; it never names the service account if that
  /// has to have a credential (LoginOptions::guards_service_account()). The same header from
  /// another peer makes the request anonymous, even if it carries a session. Then comes a session,
  /// which is renewed in `response` from time to time. kUnavailable if the role is not known.
  Result<access::Identity> identify(const net::Request& request, net::Response& response);

  /// The row of GET whoami as a JSON object.
  [[nodiscard]] std::string whoami(const net::Request& request, const access::Identity& identity);
  /// Answers GET whoami of a caller without identity with 200, no row and the login methods.
  void answer_anonymous(const net::Request& request, net::Response& response);
  /// Answers GET whoami with 401 in the usual envelope, with the login methods as "login".
  void answer_unauthenticated(const net::Request& request, net::Response& response);

  /// True if there is a login page at the path (without route prefix).
  [[nodiscard]] bool has_page(std::string_view method, std::string_view path) const;
  void answer_page(std::string_view path, const net::Request& request, net::Response& response);

 private:
  SignIn(LoginOptions options, Deployment deployment, store::Reader& reader, const Clock& clock);

  struct Form;

  [[nodiscard]] std::int64_t now_seconds() const;
  [[nodiscard]] CookieScope cookie_scope(const net::Request& request) const;
  [[nodiscard]] std::string base() const;
  [[nodiscard]] std::string home() const;
  [[nodiscard]] std::vector<std::string> cookies(const net::Request& request,
                                                 std::string_view name) const;
  [[nodiscard]] bool has_service_credential(const net::Request& request) const;
  void report_refused_name(const net::Request& request, std::string_view why);

  [[nodiscard]] std::optional<access::Session> find_session(const net::Request& request) const;
  [[nodiscard]] bool is_alive(const access::Session& session) const;
  [[nodiscard]] std::string credential_of(const std::string& hash) const;
  void begin_session(access::Session session,
                     const std::string& next,
                     const net::Request& request,
                     net::Response& response);

  /// The token that forms of this browser must contain, derived from its session or from a cookie
  /// that this function sets.
  std::string form_token(const net::Request& request, net::Response& response);
  [[nodiscard]] bool is_form_token(const net::Request& request, const std::string& token) const;
  [[nodiscard]] std::optional<Form> read_form(const net::Request& request,
                                              net::Response& response) const;
  [[nodiscard]] std::string login_methods_json(const net::Request& request,
                                               net::Response& response);

  void show_login(const net::Request& request, net::Response& response);
  void log_in(const net::Request& request, net::Response& response);
  void log_out(const net::Request& request, net::Response& response);
  void begin_oidc(const net::Request& request, net::Response& response);
  void end_oidc(const net::Request& request, net::Response& response);
  void refuse_oidc(net::Response& response, const net::Request& request, const Error& error);
  [[nodiscard]] std::string client_of(const net::Request& request) const;
  [[nodiscard]] bool is_of_proxy(const net::Request& request) const;

  const LoginOptions options_;
  const Deployment deployment_;
  std::string external_origin_;
  std::string external_path_;
  std::string redirect_url_;
  store::Reader& reader_;
  const Clock& clock_;
  std::string service_token_;                     ///< empty: none
  std::string proxy_token_;                       ///< empty: none
  std::unique_ptr<const access::Signer> signer_;  ///< null: no login method has sessions
  std::unique_ptr<LocalUsers> users_;
  std::unique_ptr<Provider> provider_;
  Attempts attempts_;
  ExpiringSet ended_;     ///< sessions that were logged out
  ExpiringSet redeemed_;  ///< states that were used
  std::atomic<int> exchanges_ = 0;
  std::atomic<std::int64_t> last_report_ = 0;  ///< of a refused name, epoch seconds
};

}  // namespace ceems::api::login
