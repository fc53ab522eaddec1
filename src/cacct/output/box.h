#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cacct/output/table.h"

namespace ceems::cacct {

/// Draws a table with the light box characters of Unicode, laid out as the reference does: two
/// lines of titles, the units, a line "Summary" and the footers. Adjacent equal titles share a
/// cell, and so do the empty cells of the line "Summary". `bold` marks titles with an escape
/// sequence.
std::string draw_box(const Table& table, bool bold = false);

/// How many columns of a terminal a text takes: 2 for wide East Asian characters, 0 for combining
/// ones, 1 for all others. The text holds no control characters.
std::size_t display_width(std::string_view text);

/// Cuts a text into pieces of at most `width` columns, in which no character is cut. A text that
/// fits is one piece.
std::vector<std::string> cut(std::string_view text, std::size_t width);

}  // namespace ceems::cacct
