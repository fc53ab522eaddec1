#pragma once

#include <cstddef>

namespace ceems::cacct {

/// The columns of the terminal, from 60 to 240; 80 if standard output is none.
std::size_t terminal_width();

/// Whether the environment names a character set, and it is not UTF-8.
bool lacks_utf8();

}  // namespace ceems::cacct
