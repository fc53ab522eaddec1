#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "net/client/tls_files.h"
#include "net/client/transfer.h"

namespace ceems::net {

struct Token {
  std::string type = "Bearer";
  std::string access_token;
  std::chrono::seconds lifetime{0};  ///< 0: not said
};

/// The answer of a token endpoint (RFC 6749 §5.1). kParse without a token in it.
Result<Token> parse_token(std::string_view text);

/// Who asks for a token: somebody with as much time as his request has, or a thread that others
/// wait for.
enum class Haste : std::uint8_t { kNone, kGreat };

/// Tokens by the client-credentials grant (RFC 6749 §4.4). One fetch at a time, on a thread of its
/// own: a token is renewed while the old one still counts, so that only who has none at all waits
/// for the server of tokens. Safe for concurrent use.
class TokenSource {
 public:
  /// `pool` must outlive it.
  TokenSource(ClientOptions::OAuth2 options, TransferPool& pool)
      : options_(std::move(options)), pool_(&pool), tls_files_(options_.tls) {}

  /// The value of the Authorization field. Where there is no token it waits for one until the
  /// deadline of `request`; in great haste 2 s, and after a fetch that failed half a second of the
  /// next, which begins 5 s later. Errors name the token URL without query; none is kTimeout, which
  /// would be the server's that the request is for.
  Result<std::string> authorization(const TransferRequest& request, Haste haste);
  /// This value was refused: where it is still in use the next call fetches another, but not for
  /// every request to a server that refuses them all.
  void forget(std::string_view refused);

 private:
  void begin(const TransferRequest& model) CEEMS_REQUIRES(mutex_);
  Result<Token> fetch(TransferRequest request);
  Result<ClientResponse> ask(TransferRequest& request, bool in_header);
  void take(const Result<Token>& token) CEEMS_REQUIRES(mutex_);

  const ClientOptions::OAuth2 options_;
  TransferPool* const pool_;
  TlsFiles tls_files_;
  /// Servers take the client's id and secret from the header or from the form; found by trying. Of
  /// the thread that fetches.
  bool in_header_ = true;

  Mutex mutex_;
  Condition ended_;  // a fetch
  std::string authorization_ CEEMS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point renewed_ CEEMS_GUARDED_BY(mutex_);  // is it from then on
  std::chrono::steady_clock::time_point ends_ CEEMS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point forgotten_ CEEMS_GUARDED_BY(mutex_);
  bool fetching_ CEEMS_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point began_ CEEMS_GUARDED_BY(mutex_);
  std::uint64_t fetches_ CEEMS_GUARDED_BY(mutex_) = 0;  // that ended
  std::chrono::steady_clock::time_point failed_ CEEMS_GUARDED_BY(mutex_);
  Result<std::string> last_ CEEMS_GUARDED_BY(mutex_);  // what a fetch gave
  std::jthread thread_ CEEMS_GUARDED_BY(mutex_);       // ended before all the rest
};

}  // namespace ceems::net
