#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ceems::crypto {

/// The SHA-256 hash (FIPS 180-4), 32 bytes.
std::string sha256(std::string_view bytes);
/// HMAC (RFC 2104) with SHA-256, 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);
/// The bytes as hexadecimal digits in small letters.
std::string hex(std::string_view bytes);

/// Cryptographically secure random bytes. Aborts the program if the system cannot provide them.
std::string random_bytes(std::size_t count);

}  // namespace ceems::crypto
