#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ceems::report {

/// Replaces what could change what a terminal or a page shows elsewhere by U+FFFD: control
/// characters (C0, C1, DEL), line and paragraph separators, bidirectional controls, malformed
/// UTF-8. For texts that users choose.
std::string plain_text(std::string_view text);

/// The number of code points, which is the number of columns for the texts of a report.
std::size_t columns_of(std::string_view text);
/// With blanks behind it, up to that width.
std::string padded(std::string_view text, std::size_t width);

/// Replaces all that is not ASCII: the few signs that reports use by similar ones, accents by
/// their letters, the rest by '?'.
std::string to_ascii(std::string_view text);

/// Breaks a text at blanks into lines of at most `width` columns; a longer word is cut.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace ceems::report
