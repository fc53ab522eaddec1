#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ceems::store {

/// Parts of a unit's life, all of the same length.
inline constexpr std::size_t kStripParts = 24;

/// What a unit used of what it reserved in each part of its life, from 0 to 1. Nothing: not known.
struct Strip {
  using Line = std::array<std::optional<double>, kStripParts>;
  Line cpu = {}, gpu = {};
};

/// The column `strip` of ceems_unit_facts (docs/api/database.md, "Facts of units"): a character for
/// each part of the line of the CPUs, then of that of the GPUs, if anything of it is known. `.` is
/// not known; `0` to `9`, `A` to `Z`, `a` to `z`, `-` and `_` are 0 to 63 parts of 63. Empty:
/// nothing is known.
std::string strip_text(const Strip& strip);
/// Whether strip_text() writes such a text.
bool is_strip(std::string_view text);

}  // namespace ceems::store
