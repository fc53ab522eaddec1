#include "crypto/base64.h"

#include <algorithm>
#include <cstdint>

namespace ceems::crypto {

namespace {
constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  while (!bytes.empty()) {
    const std::string_view group = bytes.substr(0, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8U | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= group.size() ? kBase64Alphabet[bits >> (18 - 6 * i) & 63U] : '=';
    }
    bytes.remove_prefix(group.size());
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size() / 4 * 3);
  while (!text.empty()) {
    std::string_view group = text.substr(0, 4);
    text.remove_prefix(4);
    if (text.empty()) {
      while (group.size() > 2 && group.ends_with('=')) {
        group.remove_suffix(1);
      }
    }
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t value = i < group.size() ? kBase64Alphabet.find(group[i]) : 0;
      if (value == std::string_view::npos) {
        return std::nullopt;
      }
      bits = bits << 6U | static_cast<std::uint32_t>(value);
    }
    for (std::size_t i = 0; i + 1 < group.size(); ++i) {
      out += static_cast<char>(bits >> (16 - 8 * i) & 255U);
    }
  }
  return out;
}

std::string base64url_encode(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  while (text.ends_with('=')) {
    text.pop_back();
  }
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> base64url_decode(std::string_view text) {
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  auto bytes = base64_decode(standard);
  if (!bytes || base64url_encode(*bytes) != text) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace ceems::crypto
