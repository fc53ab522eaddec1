#pragma once

// What code that calls OpenSSL itself shares: owners of its objects and the words of its errors.
// Private to .cc files: it brings OpenSSL's headers.

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace ceems::crypto {

/// Deleter of a std::unique_ptr that calls OpenSSL's own function, e.g. Free<X509_free>.
template <auto kFunction>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFunction(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

/// Why the thread's last call of OpenSSL failed, "unknown error" where it does not say; forgets all
/// its errors. See ERR_peek_last_error(3).
inline std::string openssl_reason() {
  const char* text = ::ERR_reason_error_string(::ERR_peek_last_error());
  ::ERR_clear_error();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace ceems::crypto
