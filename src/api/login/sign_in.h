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

/// Where the server stands.
struct Place {
  std::vector<std::string> user_headers = {std::string(model::kUserHeader)};
  std::string route_prefix = {};    ///< without a slash at its end
  std::string external_url = {};    ///< --web.external-url; may be empty
  std::string data_directory = {};  ///< for the key of sessions
};

/// A set of texts that forgets each at its time, and the ones that end first when it is full. Safe
/// for concurrent use.
class Remembered {
 public:
  explicit Remembered(std::size_t limit) : limit_(limit) {}
  /// False when it is there already.
  bool add(const std::string& text, std::int64_t ends, std::int64_t now);
  [[nodiscard]] bool contains(const std::string& text) const;

 private:
  const std::size_t limit_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::int64_t> ends_ CEEMS_GUARDED_BY(mutex_);
};

/// Who asks, and the pages where people log in (docs/api/access.md, "Who asks"). Safe for
/// concurrent use.
class SignIn {
 public:
  /// `reader` and `clock` must outlive it. Errors: a file of users or a key that cannot be used,
  /// OIDC without an address to come back to.
  static Result<std::unique_ptr<SignIn>> create(LoginOptions options,
                                                Place place,
                                                store::Reader& reader,
                                                const Clock& clock);
  ~SignIn();
  SignIn(const SignIn&) = delete;
  SignIn& operator=(const SignIn&) = delete;

  /// Who sends the request, nobody when in doubt: (1) a header from a trusted peer; the same
  /// header from elsewhere refuses the request whatever else it carries; (2) a session. A session
  /// that was used is written anew into `response` now and then.
  access::Identity identify(const net::Request& request, net::Response& response);

  /// The row of GET whoami, a JSON object.
  [[nodiscard]] std::string whoami(const net::Request& request, const access::Identity& identity);
  /// 401 of GET whoami: the usual envelope, with the ways to log in as "login".
  void answer_stranger(const net::Request& request, net::Response& response);

  /// Is there a page of logins at the path (without route prefix)?
  [[nodiscard]] bool has_page(std::string_view method, std::string_view path) const;
  void answer_page(std::string_view path, const net::Request& request, net::Response& response);

 private:
  SignIn(LoginOptions options, Place place, store::Reader& reader, const Clock& clock);

  struct Form;

  [[nodiscard]] std::int64_t now_seconds() const;
  [[nodiscard]] CookieScope cookie_scope(const net::Request& request) const;
  [[nodiscard]] std::string base() const;
  [[nodiscard]] std::string home() const;
  void report_untrusted_header(const net::Request& request);

  [[nodiscard]] std::optional<access::Session> find_session(const net::Request& request) const;
  [[nodiscard]] bool is_alive(const access::Session& session) const;
  [[nodiscard]] std::string credential_of(const std::string& hash) const;
  void begin_session(access::Session session,
                     const std::string& next,
                     const net::Request& request,
                     net::Response& response);

  /// What forms of this browser carry: derived from its session, or from a cookie that is set here.
  std::string form_token(const net::Request& request, net::Response& response);
  [[nodiscard]] bool is_form_token(const net::Request& request, const std::string& token) const;
  [[nodiscard]] std::optional<Form> read_form(const net::Request& request,
                                              net::Response& response) const;
  [[nodiscard]] std::string ways_json(const net::Request& request, net::Response& response);

  void show_login(const net::Request& request, net::Response& response);
  void log_in(const net::Request& request, net::Response& response);
  void log_out(const net::Request& request, net::Response& response);
  void begin_oidc(const net::Request& request, net::Response& response);
  void end_oidc(const net::Request& request, net::Response& response);
  void refuse_oidc(net::Response& response, const net::Request& request, const Error& error);
  [[nodiscard]] std::string client_of(const net::Request& request) const;

  const LoginOptions options_;
  const Place place_;
  std::string external_origin_;
  std::string external_path_;
  std::string redirect_url_;
  store::Reader& reader_;
  const Clock& clock_;
  std::unique_ptr<const access::Signer> signer_;  ///< null: no way that has sessions
  std::unique_ptr<LocalUsers> users_;
  std::unique_ptr<Provider> provider_;
  Attempts attempts_;
  Remembered ended_;     ///< sessions that were logged out
  Remembered redeemed_;  ///< states that came back
  std::atomic<int> exchanges_ = 0;
  std::atomic<std::int64_t> last_report_ = 0;  ///< of an untrusted header, epoch seconds
};

}  // namespace ceems::api::login
