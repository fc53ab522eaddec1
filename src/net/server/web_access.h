#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http.h"

struct ssl_ctx_st;

namespace ceems::net {

/// The part of the web configuration that applies to a request.
struct WebRules {
  Headers headers;                                         ///< set on every response
  std::vector<std::pair<std::string, std::string>> users;  ///< name, bcrypt hash; empty: no auth
};

/// The web configuration in use. It is read again when one of its files changes. Safe for
/// concurrent use.
///
/// While a changed configuration is invalid, there are no rules, and the server responds with 500.
/// If only the certificate files cannot be used, for example in the middle of a rotation, the last
/// good ones stay in use. Each problem is logged once.
class WebAccess {
 public:
  enum class Verdict {
    kAllowed,
    kDenied,
    kUnknown,  ///< only hashing the password can tell: ask check_password()
  };

  /// Errors (kInvalidArgument, kParse or kNotFound) name the file, line and key and what is wrong.
  /// For `around_files` and `on_certificate`, see ServerOptions.
  static Result<std::unique_ptr<WebAccess>> open(
      const std::string& file,
      std::function<void(const std::function<void()>&)> around_files = {},
      std::function<void(std::int64_t)> on_certificate = {});
  ~WebAccess();
  WebAccess(const WebAccess&) = delete;
  WebAccess& operator=(const WebAccess&) = delete;

  /// Whether TLS was on at open(). Turning TLS on or off requires a restart.
  [[nodiscard]] bool tls() const;
  /// The context for the next handshake; null without TLS.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> tls_context();
  /// The rules for the next request; null while the configuration is invalid.
  [[nodiscard]] std::shared_ptr<const WebRules> rules();

  /// Decides from the cache of checked passwords, which is fast. Sets request.authenticated_user if
  /// that user is allowed.
  [[nodiscard]] Verdict authorize(const WebRules& rules, Request& request);
  /// Hashes the password, which takes tens of milliseconds; make one call at a time. Otherwise like
  /// authorize(), but never returns kUnknown.
  [[nodiscard]] Verdict check_password(const WebRules& rules, Request& request);

 private:
  struct Impl;
  explicit WebAccess(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
