#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/recent_map.h"
#include "promql/matcher/work_budget.h"

namespace ceems::promql {

/// A cache of patterns that compiled, because dashboards send the same ones again and again. The
/// value says whether the pattern accepts the empty text.
using KnownPatterns = RecentMap<bool>;

/// The words that a pattern accepts, or nothing if they are too many or unbounded.
using Language = std::optional<std::vector<std::string>>;
/// A cache of the languages of patterns. It must be used with the same limits always.
using KnownLanguages = RecentMap<std::shared_ptr<const Language>>;

/// How patterns are checked.
struct PatternOptions {
  KnownPatterns* known = nullptr;       ///< null: no cache; must outlive the options
  KnownLanguages* languages = nullptr;  ///< likewise
  WorkBudget* work = nullptr;           ///< null: no limit; must outlive the options
  /// False: refuses patterns that are neither cached nor made of plain words.
  bool compile = true;
  /// False: parsers accept any text as a pattern, and check_patterns() has to follow.
  bool check = true;
};

}  // namespace ceems::promql
