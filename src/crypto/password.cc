#include "crypto/password.h"

#include <crypt.h>

#include <array>
#include <memory>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/mutex.h"

namespace ceems::crypto {

bool bcrypt_matches(const std::string& password, const std::string& hash) {
  if (password.find('\0') != std::string::npos) {
    return false;
  }
  const auto data = std::make_unique<crypt_data>();
  const char* made = ::crypt_r(password.c_str(), hash.c_str(), data.get());
  const std::string_view result(made == nullptr ? "" : made);
  const bool same =
      result.size() == hash.size() && CRYPTO_memcmp(result.data(), hash.data(), hash.size()) == 0;
  OPENSSL_cleanse(data.get(), sizeof(crypt_data));
  return same;
}

std::string dummy_hash(std::string_view like) {
  constexpr std::size_t kCostEnd = 7;  // "$2y$10$"
  std::string hash(like.size() >= kCostEnd ? like.substr(0, kCostEnd) : "$2y$10$");
  hash += std::string(22, '.');  // salt
  hash += std::string(31, '.');  // no password is known whose hash is 23 zero bytes
  return hash;
}

std::optional<bool> PasswordCache::find(const std::string& digest) const {
  const MutexLock lock(mutex_);
  if (good_.known.contains(digest)) {
    return true;
  }
  if (bad_.known.contains(digest)) {
    return false;
  }
  return std::nullopt;
}

void PasswordCache::add(const std::string& digest, bool good) {
  const MutexLock lock(mutex_);
  Side& side = good ? good_ : bad_;
  if (!side.known.emplace(digest, true).second) {
    return;
  }
  side.order.push_back(digest);
  if (side.order.size() > limit_) {
    side.known.erase(side.order.front());
    side.order.pop_front();
  }
}

std::size_t PasswordCache::size() const {
  const MutexLock lock(mutex_);
  return good_.order.size() + bad_.order.size();
}

std::string PasswordCache::digest(std::string_view user,
                                  std::string_view hash,
                                  std::string_view password) {
  std::string all;
  for (const std::string_view part : {user, hash, password}) {
    all += std::to_string(part.size()) + ":";  // so that no two triples give the same text
    all += part;
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out{};
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(), out.data());
  OPENSSL_cleanse(all.data(), all.size());
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

}  // namespace ceems::crypto
