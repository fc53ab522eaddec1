#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ceems {

// UTF-8 as RFC 3629 has it: no surrogates, nothing overlong, nothing above U+10FFFF. Pure
// functions.

/// U+FFFD, which stands where something was no character.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Bytes of the well-formed character at the front of `text`; 0 where there is none.
std::size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

/// Has the number a form in UTF-8?
bool is_code_point(char32_t value);

/// The bytes of a code point; those of U+FFFD for what is none.
void append_utf8(std::string& out, char32_t code_point);

/// Appends `text` with U+FFFD in place of NULs, which data bases and parsers of pages take for the
/// end, and of every byte that is no UTF-8. Allocates only where `out` has to grow.
void append_clean_text(std::string& out, std::string_view text);
std::string clean_text(std::string_view text);

}  // namespace ceems
