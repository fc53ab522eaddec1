#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http.h"

struct ssl_ctx_st;

namespace ceems::net {

/// What the web configuration asks of one request.
struct WebRules {
  Headers headers;                                         ///< set on every answer
  std::vector<std::pair<std::string, std::string>> users;  ///< name, bcrypt hash; empty: no auth
};

/// The web configuration in use: re-read when a file of it changes. Safe for concurrent use.
///
/// A configuration that became invalid gives no rules (the server answers 500) until it is mended,
/// logged once. Certificate files alone that became unreadable or do not match (a rotation half
/// done) leave the last good ones in use, logged once.
class WebAccess {
 public:
  enum class Verdict {
    kAllowed,
    kDenied,
    kUnknown,  ///< only hashing the password can tell: ask check_password()
  };

  /// kInvalidArgument, kParse or kNotFound: file, line, key and what is wrong. `around_files`: see
  /// ServerOptions.
  static Result<std::unique_ptr<WebAccess>> open(
      const std::string& file, std::function<void(const std::function<void()>&)> around_files = {});
  ~WebAccess();
  WebAccess(const WebAccess&) = delete;
  WebAccess& operator=(const WebAccess&) = delete;

  /// As it was at open(): switching TLS on or off needs a restart.
  [[nodiscard]] bool tls() const;
  /// For one handshake; null without TLS.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> tls_context();
  /// For one request; null while the configuration is invalid.
  [[nodiscard]] std::shared_ptr<const WebRules> rules();

  /// Cheap: answers from the cache of checked passwords. Sets request.authenticated_user.
  [[nodiscard]] Verdict authorize(const WebRules& rules, Request& request);
  /// Hashes (tens of milliseconds); call it one at a time. kAllowed or kDenied.
  [[nodiscard]] Verdict check_password(const WebRules& rules, Request& request);

 private:
  struct Impl;
  explicit WebAccess(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
