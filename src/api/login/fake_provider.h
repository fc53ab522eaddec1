#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "net/http.h"
#include "net/server/server.h"

namespace ceems::api::login {

/// An OpenID Connect provider on localhost for tests: discovery, keys and a token endpoint that
/// checks PKCE and signs with RS256. Safe for concurrent use.
class FakeProvider {
 public:
  /// Tokens are issued at `now` (epoch seconds).
  explicit FakeProvider(std::int64_t now);
  ~FakeProvider();
  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;

  [[nodiscard]] std::string issuer() const;

  /// The code that a browser would bring back from this authorization URL.
  std::string code_for(const std::string& authorization_url);

  /// Sets a claim of the next tokens to a JSON value, or removes it if `json` is empty.
  void set_claim(const std::string& name, const std::string& json);
  /// Restores the default of a claim: for the nonce, that of the request.
  void forget_claim(const std::string& name);
  /// Switches to another key with another id.
  void rotate();
  /// Sets the status of all further answers at the path; 0: the normal one.
  void break_path(const std::string& path, int status);
  /// Sets the header of the next tokens, in JSON; empty: the correct one.
  void set_header(const std::string& json);
  /// Signs the next tokens with a key that is not in the key set.
  void sign_wrongly(bool wrongly);
  [[nodiscard]] int asked(const std::string& path) const;
  /// The Authorization header of the last token request.
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
