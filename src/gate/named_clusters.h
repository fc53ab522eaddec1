#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "gate/profile_request.h"
#include "gate/request.h"
#include "gate/selection.h"
#include "gate/tsdb_request.h"
#include "promql/ast.h"
#include "promql/matcher/work_budget.h"

namespace ceems::gate {

/// Collects the clusters that selectors name by a label. It looks at nothing else in them.
class NamedClusters {
 public:
  /// `steps` bounds the work for all selectors.
  explicit NamedClusters(std::string_view label,
                         std::size_t steps = promql::WorkBudget::kDefaultSteps)
      : label_(label), work_(steps) {}

  /// Adds the values that "=" and patterns with few alternatives accept. A matcher that accepts
  /// anything or excludes values names no cluster. Neither does an empty value.
  void add(const promql::VectorSelector& selector);
  /// Adds what such matchers in a text in any language accept. Strings are skipped, and so are
  /// comments.
  void add_found_in(std::string_view text);

  /// The cluster, or nothing if none was named. Refuses with 400 if several were, or if finding out
  /// took too much work.
  [[nodiscard]] Checked<std::optional<std::string>> only() const;

 private:
  void add(const promql::Matcher& matcher);

  std::string_view label_;
  promql::WorkBudget work_;
  std::set<std::string, std::less<>> found_;
};

/// The cluster that the selectors of an admin's request name, or nothing: then the header decides.
/// Units, functions, parameters and endpoints do not matter, but the path must be unambiguous.
/// A query that cannot be parsed is searched for the label. Refuses with 400 if selectors name
/// different clusters, or if a form or call that contains the label cannot be read, because its
/// cluster is then unknown. With Budget::kInline, refuses
/// whatever takes long.
Checked<std::optional<std::string>> cluster_named(const ParsedRequest& received,
                                                  const TsdbRules& rules,
                                                  Budget budget);
Checked<std::optional<std::string>> cluster_named(const ParsedRequest& received,
                                                  const ProfileRules& rules);

}  // namespace ceems::gate
