#pragma once

#include <string_view>

namespace ceems::advice {

// Files that the program carries (cmake/embed.cmake): data/advice/*.yml.
extern const std::string_view kEnYml;
extern const std::string_view kDeYml;
extern const std::string_view kFrYml;

}  // namespace ceems::advice
