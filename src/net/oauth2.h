#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "base/thread_annotations.h"
#include "net/tls_files.h"
#include "net/transfer.h"

namespace ceems::net {

/// Tokens by the client-credentials grant (RFC 6749 §4.4), kept until shortly before they end. Safe
/// for concurrent use; one call fetches while others wait.
class TokenSource {
 public:
  explicit TokenSource(ClientOptions::OAuth2 options)
      : options_(std::move(options)), tls_files_(options_.tls) {}

  /// The value of the Authorization field. Errors name the token URL without query.
  Result<std::string> authorization(TransferPool& pool, TransferRequest prototype);
  /// The token in use was refused: the next call fetches a new one.
  void forget();

 private:
  Result<ClientResponse> ask(TransferPool& pool, TransferRequest& request, bool in_header);

  const ClientOptions::OAuth2 options_;
  TlsFiles tls_files_;
  std::mutex mutex_;
  std::string authorization_ CEEMS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point ends_ CEEMS_GUARDED_BY(mutex_);
  /// Servers take the client's id and secret from the header or from the form; found by trying.
  bool in_header_ CEEMS_GUARDED_BY(mutex_) = true;
};

struct Token {
  std::string type = "Bearer";
  std::string access_token;
  std::chrono::seconds lifetime{0};  ///< 0: not said
};

/// The answer of a token end point (RFC 6749 §5.1). kParse without a token in it.
Result<Token> parse_token(std::string_view text);

}  // namespace ceems::net
