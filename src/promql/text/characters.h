#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "base/strings.h"

namespace ceems::promql {

// Classes of bytes. They are tables, because every byte of a query is looked up several times.

constexpr bool is_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

/// A set of bytes.
class ByteSet {
 public:
  explicit constexpr ByteSet(std::string_view bytes) {
    for (const char byte : bytes) {
      known_.at(static_cast<unsigned char>(byte)) = true;
    }
  }
  /// Letters, digits and these.
  static constexpr ByteSet letters_digits_and(std::string_view bytes) {
    ByteSet set(bytes);
    for (int byte = 0; byte < 128; ++byte) {
      if (is_letter(static_cast<char>(byte)) || is_digit(static_cast<char>(byte))) {
        set.known_.at(static_cast<std::size_t>(byte)) = true;
      }
    }
    return set;
  }

  [[nodiscard]] constexpr bool contains(char byte) const {
    return known_[static_cast<unsigned char>(byte)];
  }
  [[nodiscard]] constexpr bool contains_all(std::string_view text) const {
    return std::ranges::all_of(text, [this](char byte) { return contains(byte); });
  }

 private:
  std::array<bool, 256> known_{};
};

/// The bytes of names of labels and metrics after the first.
inline constexpr ByteSet kInLabel = ByteSet::letters_digits_and("");
inline constexpr ByteSet kInMetric = ByteSet::letters_digits_and(":");

}  // namespace ceems::promql
