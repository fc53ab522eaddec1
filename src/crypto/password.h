#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"

namespace ceems::crypto {

/// True when the password gives the bcrypt hash. Tens of milliseconds. A password with a zero byte
/// never does: crypt(3) would look at what stands before it only.
bool bcrypt_matches(const std::string& password, const std::string& hash);

/// A bcrypt hash nobody knows a password for, as costly to check as `like`.
std::string dummy_hash(std::string_view like);

/// Outcomes of password checks, good and bad apart, so that guessing does not push out those who
/// know theirs. Holds digests, no passwords. The oldest goes first. Safe for concurrent use.
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
