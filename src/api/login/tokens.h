#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/policy.h"
#include "access/tokens.h"
#include "api/login/attempts.h"
#include "api/login/config.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "net/http.h"
#include "store/reader.h"
#include "store/tokens.h"

namespace ceems::api::login {

/// Personal API tokens begin with this text, by which people and scanners of leaked secrets
/// recognise them.
inline constexpr std::string_view kTokenPrefix = "ceems_pat_";

/// Whether the request has a personal token in a header Authorization, or anything in the one for
/// tokens (model::kTokenHeader), valid or not. No other identity of such a request counts.
bool has_token(const net::Request& request);
/// Whether something like a personal token is in the query string, where logs keep it.
bool has_token_in_query(const net::Request& request);

/// Makes and checks personal API tokens (docs/api/tokens.md). Safe for concurrent use.
class Tokens {
 public:
  using OpenWriter = std::function<Result<std::unique_ptr<store::TokenWriter>>()>;
  struct Setup {
    LoginOptions login = {};
    std::vector<std::string> user_headers = {};
    std::string external_url = {};  ///< --web.external-url; may be empty
    /// Opens the writer of the database, when it is first needed.
    OpenWriter open_writer = {};
  };
  /// `reader` and `clock` outlive it.
  Tokens(Setup setup, store::Reader& reader, const Clock& clock);
  /// Closes the writer; nothing is written afterwards.
  void close();

  enum class Verdict : std::uint8_t {
    kRefused,  ///< unknown, expired, revoked, malformed, or several of them
    kMixed,    ///< with a header that names somebody else, or a credential of the service account
    kTooMany,  ///< refused, and so were many others from that address
    kGood,
  };
  struct Checked {
    Verdict verdict = Verdict::kRefused;
    access::Identity identity = {};
    std::chrono::seconds wait{0};  ///< with kTooMany
  };
  /// Checks the token of a request for which has_token() is true. Errors come from the database.
  Result<Checked> check(const net::Request& request);

  struct Made {
    store::Token token = {};
    std::string secret = {};  ///< not stored anywhere
  };
  /// Makes a token, which expires after `lifetime`, by default after 90 days. kInvalidArgument with
  /// a text for clients. Nothing if the user has kMaxPerUser tokens.
  Result<std::optional<Made>> make(const std::string& user,
                                   const std::string& name,
                                   access::TokenScope scope,
                                   std::optional<std::chrono::days> lifetime);
  /// Deletes a token, of this user if one is given. Returns whose it was; nothing if there is none.
  Result<std::optional<std::string>> revoke(const std::string& id,
                                            const std::optional<std::string>& user);
  /// Whether the request comes from a page of this server or from a program.
  [[nodiscard]] bool is_same_site(const net::Request& request) const;

  static constexpr std::size_t kMaxPerUser = 20;
  static constexpr std::size_t kMaxNameBytes = 100;
  static constexpr std::chrono::hours kUseStep{1};  ///< of the time of the last use

 private:
  template <typename T>
  Result<T> write(const std::function<Result<T>(store::TokenWriter&)>& work);
  [[nodiscard]] bool is_mixed(const net::Request& request, const std::string& owner) const;
  [[nodiscard]] Checked refuse(const net::Request& request, const std::string& hash);
  void note_use(const store::Token& token, std::int64_t now_ms);

  const Setup setup_;
  const std::string origin_;
  store::Reader& reader_;
  const Clock& clock_;
  Attempts attempts_;
  std::atomic<bool> noting_ = false;
  Mutex mutex_;
  bool closed_ CEEMS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<store::TokenWriter> writer_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api::login
