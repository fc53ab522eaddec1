#include "crypto/password.h"

#include <crypt.h>

#include <array>
#include <memory>

#include <openssl/crypto.h>
#include <openssl/rand.h>
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

Result<std::string> bcrypt_hash(const std::string& password, int cost) {
  constexpr std::size_t kMaxPassword = 72;
  constexpr std::size_t kSalt = 16;
  if (password.find('\0') != std::string::npos || password.size() > kMaxPassword) {
    return fail(ErrorCode::kInvalidArgument,
                "bcrypt takes passwords of up to {} bytes without NUL bytes", kMaxPassword);
  }
  std::array<unsigned char, kSalt> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return fail(ErrorCode::kInternal, "no random bytes for a salt");
  }
  std::array<char, CRYPT_GENSALT_OUTPUT_SIZE> setting{};
  const auto data = std::make_unique<crypt_data>();
  const char* made = nullptr;
  if (::crypt_gensalt_rn("$2y$", static_cast<unsigned long>(cost),
                         reinterpret_cast<const char*>(random.data()),
                         static_cast<int>(random.size()), setting.data(),
                         static_cast<int>(setting.size())) != nullptr) {
    made = ::crypt_r(password.c_str(), setting.data(), data.get());
  }
  if (made == nullptr || *made == '*') {
    return fail(ErrorCode::kInvalidArgument, "cannot make a bcrypt hash of cost {}", cost);
  }
  std::string hash = made;
  OPENSSL_cleanse(data.get(), sizeof(crypt_data));
  return hash;
}

Result<std::string> random_text(std::size_t size) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  constexpr unsigned kFair = 256 / kAlphabet.size() * kAlphabet.size();  // above, some would recur
  std::string text;
  while (text.size() < size) {
    unsigned char byte = 0;
    if (RAND_bytes(&byte, 1) != 1) {
      return fail(ErrorCode::kInternal, "no random bytes for a password");
    }
    if (byte < kFair) {
      text += kAlphabet[byte % kAlphabet.size()];
    }
  }
  return text;
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
