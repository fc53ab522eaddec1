#pragma once

#include <span>
#include <string_view>

namespace ceems::config {

/// The known word closest to a mistyped one, by the number of single-character edits. Empty when
/// every known word needs more edits than a third of the length of `word` (one edit is always
/// allowed). The result is one of `known`.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);
inline std::string_view nearest(std::string_view word,
                                std::initializer_list<std::string_view> known) {
  return nearest(word, std::span(known.begin(), known.size()));
}

}  // namespace ceems::config
