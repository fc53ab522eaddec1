#pragma once

#include <cstddef>

namespace ceems::cacct {

/// The columns of the terminal, from 60 to 240; 80 if standard output is none.
std::size_t terminal_width();

/// The columns of the terminal as they are; 100 if standard output is none.
std::size_t list_width();
/// Its rows; 24 if standard output is none.
std::size_t terminal_rows();

/// How wide the API server writes texts.
inline constexpr long kMinTextWidth = 60;
inline constexpr long kMaxTextWidth = 240;

/// Whether the environment names a character set, and it is not UTF-8.
bool lacks_utf8();

}  // namespace ceems::cacct
