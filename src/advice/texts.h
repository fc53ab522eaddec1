#pragma once

#include <string_view>

namespace ceems::advice {

// Files that the program carries (cmake/embed.cmake).
extern const std::string_view kReportYml;  ///< packaging/rules.d/report.yml
extern const std::string_view kEnYml;      ///< data/advice/en.yml
extern const std::string_view kDeYml;
extern const std::string_view kFrYml;

}  // namespace ceems::advice
