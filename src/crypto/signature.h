#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::crypto {

// Ed25519 signatures (RFC 8032). Private keys are texts in PEM (PKCS #8, RFC 7468), public keys the
// 32 bytes of RFC 8032, signatures 64 bytes. Pure functions, safe for concurrent use.

/// A new private key. kInternal if the system has no entropy.
Result<std::string> make_signing_key();

/// The public key that belongs to a private one. kInvalidArgument if `private_key` is not an
/// Ed25519 key without a passphrase.
Result<std::string> public_key_of(std::string_view private_key);

/// The signature of a message. Errors as public_key_of().
Result<std::string> sign(std::string_view private_key, std::string_view message);

/// Whether the owner of the public key has signed exactly this message. False also for keys and
/// signatures of another length.
bool is_signed_by(std::string_view public_key,
                  std::string_view message,
                  std::string_view signature);

/// "SHA256:" and the base64 text of the hash of a public key, for people to compare.
std::string fingerprint(std::string_view public_key);

}  // namespace ceems::crypto
