#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "config/yaml.h"

namespace ceems::advice {

namespace rule_files {
struct File {
  std::string_view name, text;
};
/// data/advice/rules/*.yml in the order of their names (cmake/embed.cmake).
std::span<const File> files();
}  // namespace rule_files

/// The documents of these files. Each holds one rule that the program carries: the keys that a rule
/// of a site has (rule.h), and kCoreKeys.
const std::vector<config::Node>& core_documents();

/// `bit` is the place of the rule in the column `advice` of the database (store/advice_rules.h); it
/// never changes. `name` is what the web page calls it, by language. `docs` is its row in
/// docs/report.md. `cases` are runs on which it is tested (core_rules_test.cc).
inline constexpr std::array<std::string_view, 4> kCoreKeys{"bit", "name", "docs", "cases"};

}  // namespace ceems::advice
