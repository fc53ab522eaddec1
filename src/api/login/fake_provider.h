#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "net/http.h"
#include "net/server/server.h"

namespace ceems::api::login {

/// A provider of OpenID Connect on this machine for tests: discovery, keys, token end point (with
/// PKCE checked), signing with RS256. Safe for concurrent use.
class FakeProvider {
 public:
  /// Claims are made for `now` (epoch seconds).
  explicit FakeProvider(std::int64_t now);
  ~FakeProvider();
  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;

  [[nodiscard]] std::string issuer() const;

  /// What the browser would bring back for the address it was sent to: a code for that request.
  std::string code_for(const std::string& authorization_url);

  /// Replaces (JSON) or, with "", removes a claim of the next tokens.
  void set_claim(const std::string& name, const std::string& json);
  /// The nonce as it was asked for, again.
  void forget_claim(const std::string& name);
  /// Another key with another id from now on.
  void rotate();
  /// Status of all answers below the path from now on; 0: the usual.
  void break_path(const std::string& path, int status);
  /// The header of the next tokens, in JSON; empty: the right one.
  void set_header(const std::string& json);
  /// Signs with a key that is not in the set.
  void sign_wrongly(bool wrongly);
  [[nodiscard]] int asked(const std::string& path) const;
  /// Authorization header of the last token request.
  [[nodiscard]] std::string last_authorization() const;

 private:
  struct Secrets;
  void answer(const net::Request& request, net::Response& response);
  std::string id_token(const std::string& nonce) CEEMS_REQUIRES(mutex_);
  void answer_token(const net::Request& request, net::Response& response) CEEMS_REQUIRES(mutex_);

  struct Code {
    std::string nonce, challenge, redirect_uri;
  };

  mutable Mutex mutex_;
  std::unique_ptr<Secrets> secrets_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, Code> codes_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, std::string> claims_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, int> broken_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, int> asked_ CEEMS_GUARDED_BY(mutex_);
  std::string header_ CEEMS_GUARDED_BY(mutex_);
  std::string authorization_ CEEMS_GUARDED_BY(mutex_);
  bool wrong_key_ CEEMS_GUARDED_BY(mutex_) = false;
  std::string issuer_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace ceems::api::login
