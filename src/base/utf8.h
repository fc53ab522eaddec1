#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ceems {

// UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, nothing above U+10FFFF. Pure
// functions.

/// U+FFFD, which replaces malformed characters.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// The length in bytes of the character at the front of `text`; 0 if it is malformed or missing.
std::size_t utf8_length(std::string_view text);

/// The code point of a character whose bytes utf8_length() found to be well-formed.
char32_t code_point(std::string_view character);

bool is_utf8(std::string_view text);

/// False for characters that control a terminal, break a line or change the direction of writing.
bool is_printable(char32_t code_point);

/// Replaces characters that could change what a terminal shows elsewhere: control characters (C0,
/// C1, DEL), line and paragraph separators, bidirectional controls, malformed UTF-8. What is beyond
/// `limit` characters becomes "…".
std::string terminal_safe(std::string_view text, std::size_t limit = std::string_view::npos);

/// Whether the number is a code point that UTF-8 can encode.
bool is_code_point(char32_t value);

/// Appends a code point, or U+FFFD if the number is not a code point.
void append_utf8(std::string& out, char32_t code_point);

/// Appends `text` with U+FFFD in place of every byte that is not valid UTF-8, and of NULs, which
/// databases and HTML parsers take for the end of the text. Allocates only if `out` has to grow.
void append_clean_text(std::string& out, std::string_view text);
std::string clean_text(std::string_view text);

}  // namespace ceems
