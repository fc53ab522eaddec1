#pragma once

// Shared by code that calls OpenSSL directly: owning handles for its objects, and its error texts.
// Include it only in .cc files, because it includes OpenSSL's headers.

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace ceems::crypto {

/// A deleter for std::unique_ptr that calls an OpenSSL function, e.g. Free<X509_free>.
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

/// The reason why the last OpenSSL call of this thread failed, or "unknown error" if OpenSSL does
/// not give one. Clears the error queue of the thread, see ERR_peek_last_error(3).
inline std::string openssl_reason() {
  const char* text = ::ERR_reason_error_string(::ERR_peek_last_error());
  ::ERR_clear_error();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace ceems::crypto
