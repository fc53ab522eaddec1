#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ceems::crypto {

/// The 32 bytes of SHA-256 (FIPS 180-4).
std::string sha256(std::string_view bytes);

/// Bytes nobody can guess. The program ends where the system has none to give.
std::string random_bytes(std::size_t count);

}  // namespace ceems::crypto
