#pragma once

#include <initializer_list>
#include <string_view>

namespace ceems::ingest {

/// Whether standard error of a command that ended with 0 says that its output is not complete: a
/// line has "error:", "fatal:" or "traceback (most recent call last)", or one of `signs`, and none
/// of `harmless`. Lines of warnings and lower levels are harmless. All in lower case; lines in any.
bool complains(std::string_view text,
               std::initializer_list<std::string_view> signs,
               std::initializer_list<std::string_view> harmless);

}  // namespace ceems::ingest
