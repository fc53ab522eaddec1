#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace ceems::store {

/// A row of the table ceems_tokens: a personal API token, without its secret. Times are epoch
/// milliseconds.
struct Token {
  std::string id = {};    ///< random, for people and the audit; not a secret
  std::string hash = {};  ///< of the secret, in hex; never part of an answer
  std::string username = {};
  std::string name = {};   ///< in the owner's words
  std::string scope = {};  ///< access::token_scope_name()
  std::int64_t created_ms = 0;
  std::int64_t expires_ms = 0;
  std::int64_t used_ms = 0;  ///< rounded, see note_use(); 0: never
};

/// Writes tokens; store::Reader finds them. Used by one thread at a time. Each call is one
/// statement, which neither waits for the window that is being written on a PostgreSQL server nor
/// needs to lead there. Errors: kUnavailable if trying again may help, otherwise kInternal.
class TokenWriter {
 public:
  virtual ~TokenWriter() = default;

  /// Stores the token unless its owner has `limit` of them. Returns whether it did.
  virtual Result<bool> add(const Token& token, std::size_t limit) = 0;
  /// Deletes the token with this id, of this owner if one is given. Returns whose it was; nothing
  /// if there is none.
  virtual Result<std::optional<std::string>> remove(const std::string& id,
                                                    const std::optional<std::string>& username) = 0;
  /// Deletes the owner's tokens that expired before the time.
  virtual Result<> remove_expired(const std::string& username, std::int64_t before_ms) = 0;
  virtual Result<> note_use(const std::string& id, std::int64_t now_ms) = 0;
};

}  // namespace ceems::store
