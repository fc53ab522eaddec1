#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/client/tls_files.h"
#include "net/client/transfer.h"

namespace ceems::net {

struct Token {
  std::string type = "Bearer";
  std::string access_token;
  std::chrono::seconds lifetime{0};  ///< 0: not given
};

/// Parses the response of a token endpoint (RFC 6749 §5.1). Returns kParse if it contains no token.
Result<Token> parse_token(std::string_view text);

/// How long a caller may wait for a token: with kNone until the deadline of its request, with
/// kGreat only briefly, because others wait for the calling thread.
enum class Haste : std::uint8_t { kNone, kGreat };

/// How long callers in great haste wait for a token, and how long nothing is fetched. Tests shorten
/// them.
struct TokenTimes {
  std::chrono::milliseconds wait{2000};               ///< since the fetch began
  std::chrono::milliseconds wait_after_failure{500};  ///< the same if the last fetch failed
  std::chrono::seconds rest{5};                       ///< after a failure, and between rejections
};

/// Gets tokens by the client-credentials grant (RFC 6749 §4.4). One fetch runs at a time, on its
/// own thread. A token is renewed while the old one is still valid, so a caller waits for the token
/// server only if there is no valid token at all. Safe for concurrent use.
class TokenSource {
 public:
  /// `pool` and `clock` must outlive this object. Lifetimes and rests are measured with `clock`;
  /// waiting is in real time.
  TokenSource(ClientOptions::OAuth2 options,
              TransferPool& pool,
              const Clock& clock = real_clock(),
              const TokenTimes& times = {})
      : options_(std::move(options)),
        pool_(&pool),
        clock_(&clock),
        times_(times),
        tls_files_(options_.tls) {}

  /// The value of the Authorization field. If there is no valid token, the call waits for one:
  /// until the deadline of `request`, or in great haste until 2 s after the fetch began. After a
  /// failed fetch, a call in great haste returns its error for 5 s; then the next fetch begins, and
  /// the call waits for only 0.5 s of it. Errors name the token URL without its query. They are
  /// never kTimeout, which would suggest a timeout of the server that the request is for.
  Result<std::string> authorization(const TransferRequest& request, Haste haste);
  /// Reports that a server rejected this value. If it is still in use, the next call fetches a new
  /// token. This happens at most every 5 s, in case the server rejects all tokens.
  void forget(std::string_view refused);

 private:
  void begin(const TransferRequest& model) CEEMS_REQUIRES(mutex_);
  Result<Token> fetch(TransferRequest request);
  Result<ClientResponse> ask(TransferRequest& request, bool in_header);
  void take(const Result<Token>& token) CEEMS_REQUIRES(mutex_);

  const ClientOptions::OAuth2 options_;
  TransferPool* const pool_;
  const Clock* const clock_;
  const TokenTimes times_;
  TlsFiles tls_files_;
  /// Whether the client's ID and secret are sent in the header or in the form. Token servers accept
  /// one or the other, so the fetch tries both. Used only by the thread that fetches.
  bool in_header_ = true;

  Mutex mutex_;
  Condition ended_;  // notified when a fetch has ended
  std::string authorization_ CEEMS_GUARDED_BY(mutex_);
  Clock::SteadyTime renewed_ CEEMS_GUARDED_BY(mutex_);  // when to renew it
  Clock::SteadyTime ends_ CEEMS_GUARDED_BY(mutex_);
  Clock::SteadyTime forgotten_ CEEMS_GUARDED_BY(mutex_);
  bool fetching_ CEEMS_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point began_ CEEMS_GUARDED_BY(mutex_);  // in real time
  std::uint64_t fetches_ CEEMS_GUARDED_BY(mutex_) = 0;                    // that have ended
  Clock::SteadyTime failed_ CEEMS_GUARDED_BY(mutex_);
  Result<std::string> last_ CEEMS_GUARDED_BY(mutex_);  // result of the last fetch
  std::jthread thread_ CEEMS_GUARDED_BY(mutex_);       // last member: it is joined first
};

}  // namespace ceems::net
