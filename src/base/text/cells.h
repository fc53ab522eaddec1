#pragma once

#include <string>
#include <string_view>

namespace ceems {

// Texts that anybody may have written, in files that other programs read.

/// A text as a cell of CSV (RFC 4180) that no spreadsheet takes for a formula: with an apostrophe
/// before =, +, -, @ and blanks of control at its beginning or where a spreadsheet that separates
/// by semicolons sees another cell, quoted where needed, without malformed UTF-8. Numbers need none
/// of it.
std::string csv_cell(std::string_view text);

/// Escapes what Markdown and the HTML in it treat as markup, for a cell of a table as well.
/// Addresses do not become links by themselves, nor texts formulas.
std::string escape_markdown(std::string_view text);

}  // namespace ceems
