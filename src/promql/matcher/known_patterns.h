#pragma once

#include "base/recent_map.h"

namespace ceems::promql {

/// Patterns that compiled, so that the dashboards that send them again and again do not pay for it
/// each time: do they accept the empty text?
using KnownPatterns = RecentMap<bool>;

/// How patterns are judged.
struct PatternOptions {
  KnownPatterns* known = nullptr;  ///< null: nothing is remembered; must outlive its use
  /// False: a pattern that is neither known nor made of plain words is refused.
  bool compile = true;
};

}  // namespace ceems::promql
