#include "access/base64url.h"

#include <cstdint>

namespace ceems::access {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned kBits = 6;
constexpr std::uint32_t kSix = 0x3F;
constexpr std::uint32_t kByte = 0xFF;

}  // namespace

std::string base64url_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const char byte : bytes) {
    held = (held << 8U) | static_cast<unsigned char>(byte);
    bits += 8;
    while (bits >= kBits) {
      bits -= kBits;
      text += kAlphabet[(held >> bits) & kSix];
    }
  }
  if (bits > 0) {
    text += kAlphabet[(held << (kBits - bits)) & kSix];
  }
  return text;
}

std::optional<std::string> base64url_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const char symbol : text) {
    const auto value = kAlphabet.find(symbol);
    if (value == std::string_view::npos) {
      return std::nullopt;
    }
    held = (held << kBits) | static_cast<std::uint32_t>(value);
    bits += kBits;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>((held >> bits) & kByte);
    }
  }
  if (bits >= kBits || (held & ((1U << bits) - 1)) != 0) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace ceems::access
