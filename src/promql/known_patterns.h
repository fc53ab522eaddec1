#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ceems::promql {

/// Patterns that compiled, so that the dashboards that send them again and again do not pay for it
/// each time. Bounded: those not asked for go first. Safe for concurrent use.
class KnownPatterns {
 public:
  explicit KnownPatterns(std::size_t most = 2000) : half_(most / 2) {}

  /// Does the pattern accept the empty text? Nothing where it is not known.
  std::optional<bool> accepts_empty(std::string_view pattern);
  void add(std::string_view pattern, bool accepts_empty);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Patterns = std::unordered_map<std::string, bool, Hash, std::equal_to<>>;

  void keep(std::string_view pattern, bool accepts_empty);

  std::mutex mutex_;
  std::size_t half_;
  Patterns recent_;
  Patterns older_;  ///< what was recent before that was full
};

/// How patterns are judged.
struct PatternOptions {
  KnownPatterns* known = nullptr;  ///< null: nothing is remembered; must outlive its use
  /// False: a pattern that is neither known nor made of plain words is refused.
  bool compile = true;
};

}  // namespace ceems::promql
