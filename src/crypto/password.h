#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"

namespace ceems::crypto {

/// Whether the password matches the bcrypt hash. Takes tens of milliseconds. A password that
/// contains a NUL byte never matches, because crypt(3) would only look at what comes before it.
bool bcrypt_matches(const std::string& password, const std::string& hash);

/// The bcrypt hash ($2y$) of a password with a random salt. `cost` is the logarithm of the number
/// of rounds, 4 to 31. kInvalidArgument if the password contains a NUL byte or is longer than the
/// 72 bytes that bcrypt uses.
Result<std::string> bcrypt_hash(const std::string& password, int cost);

/// A random text of ASCII letters and digits from OpenSSL's generator for secrets. kInternal if it
/// has no entropy.
Result<std::string> random_text(std::size_t size);

/// A bcrypt hash that no known password matches, as expensive to check as `like`.
std::string dummy_hash(std::string_view like);

/// Remembers the results of password checks. Good and bad ones are kept apart, so that guesses do
/// not evict users who know their password. Holds digests instead of passwords. When one side is
/// full, its oldest entry is evicted. Safe for concurrent use.
class PasswordCache {
 public:
  explicit PasswordCache(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] std::optional<bool> find(const std::string& digest) const;
  void add(const std::string& digest, bool good);
  [[nodiscard]] std::size_t size() const;

  static std::string digest(std::string_view user,
                            std::string_view hash,
                            std::string_view password);

 private:
  struct Side {
    std::list<std::string> order;
    std::unordered_map<std::string, bool> known;
  };

  const std::size_t limit_;  ///< of each side
  mutable Mutex mutex_;
  Side good_ CEEMS_GUARDED_BY(mutex_);
  Side bad_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::crypto
