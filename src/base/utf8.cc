#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ceems {
namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// The number of bytes at the front of `text`, a multiple of eight, that are ASCII without NUL.
/// Nearly all our texts are ASCII, and every label of every sample passes through here.
std::size_t plain_length(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  std::size_t place = 0;
  std::uint64_t word = 0;
  while (text.size() - place >= sizeof(word)) {
    std::memcpy(&word, text.data() + place, sizeof(word));
    // The high bit of each byte is set if the byte is not ASCII or is 0.
    if (((word | ((word - kOnes) & ~word)) & kHighBits) != 0) {
      break;
    }
    place += sizeof(word);
  }
  return place;
}

/// The number of bytes before the first NUL or malformed character.
std::size_t clean_length(std::string_view text) {
  std::size_t place = plain_length(text);
  while (place < text.size()) {
    const auto byte = static_cast<unsigned char>(text[place]);
    if (byte > 0 && byte < 0x80) {
      ++place;
      continue;
    }
    const std::size_t length = byte == 0 ? 0 : utf8_length(text.substr(place));
    if (length == 0) {
      break;
    }
    place += length;
  }
  return place;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) {
    return 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : (lead >= 0xE0 ? 3 : 2);
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) {
      return 0;
    }
  }
  // The second byte shows overlong forms, surrogates and numbers above U+10FFFF.
  const auto second = static_cast<unsigned char>(text[1]);
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

char32_t code_point(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character.front());
  if (character.size() == 1) {
    return lead;
  }
  char32_t value = lead & (0xFFU >> (character.size() + 1));
  for (const char byte : character.substr(1)) {
    value = (value << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return value;
}

bool is_utf8(std::string_view text) {
  while (true) {
    text.remove_prefix(plain_length(text));
    if (text.empty()) {
      return true;
    }
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
}

bool is_printable(char32_t code_point) {
  const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
  const bool separator = code_point == 0x2028 || code_point == 0x2029;
  const bool bidirectional = code_point == 0x061C || code_point == 0x200E || code_point == 0x200F ||
                             (code_point >= 0x202A && code_point <= 0x202E) ||
                             (code_point >= 0x2066 && code_point <= 0x2069);
  return !control && !separator && !bidirectional;
}

std::string terminal_safe(std::string_view text, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == limit) {
      return out + "…";
    }
    const std::size_t length = utf8_length(text);
    if (length > 0 && is_printable(code_point(text.substr(0, length)))) {
      out += text.substr(0, length);
    } else {
      out += kReplacementCharacter;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

bool is_code_point(char32_t value) {
  return value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
}

void append_utf8(std::string& out, char32_t code_point) {
  if (!is_code_point(code_point)) {
    out += kReplacementCharacter;
    return;
  }
  const auto add = [&](unsigned shift, unsigned mask, unsigned mark) {
    out += static_cast<char>(static_cast<unsigned char>(((code_point >> shift) & mask) | mark));
  };
  if (code_point < 0x80) {
    add(0, 0x7F, 0);
  } else if (code_point < 0x800) {
    add(6, 0x1F, 0xC0);
    add(0, 0x3F, 0x80);
  } else if (code_point < 0x10000) {
    add(12, 0x0F, 0xE0);
    add(6, 0x3F, 0x80);
    add(0, 0x3F, 0x80);
  } else {
    add(18, 0x07, 0xF0);
    add(12, 0x3F, 0x80);
    add(6, 0x3F, 0x80);
    add(0, 0x3F, 0x80);
  }
}

void append_clean_text(std::string& out, std::string_view text) {
  while (true) {
    const std::size_t clean = clean_length(text);
    out.append(text.substr(0, clean));
    if (clean == text.size()) {
      return;
    }
    out.append(kReplacementCharacter);
    text.remove_prefix(clean + 1);
  }
}

std::string clean_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_clean_text(out, text);
  return out;
}

}  // namespace ceems
