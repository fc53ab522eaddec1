#pragma once

#include "base/recent_map.h"

namespace ceems::promql {

/// A cache of patterns that compiled, because dashboards send the same ones again and again. The
/// value says whether the pattern accepts the empty text.
using KnownPatterns = RecentMap<bool>;

/// How patterns are checked.
struct PatternOptions {
  KnownPatterns* known = nullptr;  ///< null: no cache; must outlive the options
  /// False: refuses patterns that are neither cached nor made of plain words.
  bool compile = true;
};

}  // namespace ceems::promql
