#pragma once

#include <span>
#include <string_view>

namespace ceems::config {

/// The known word that is nearest to a mistyped one (fewest single-character edits, at most a third
/// of its length); empty when none is near. The view is one of `known`.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);
inline std::string_view nearest(std::string_view word,
                                std::initializer_list<std::string_view> known) {
  return nearest(word, std::span(known.begin(), known.size()));
}

}  // namespace ceems::config
