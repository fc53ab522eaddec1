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

namespace ceems::gate {

/// The clusters that selectors name by a label, whatever else is in them.
class NamedClusters {
 public:
  explicit NamedClusters(std::string_view label) : label_(label) {}

  /// Takes in the words that "=" and patterns with few words accept. What accepts anything, or
  /// excludes, names no cluster, nor does the empty text.
  void add(const promql::VectorSelector& selector);

  /// The only one, nothing where there is none; a refusal with 400 where they disagree.
  [[nodiscard]] Checked<std::optional<std::string>> only() const;

 private:
  std::string_view label_;
  std::set<std::string, std::less<>> found_;
};

/// Where a request of an admin goes: the cluster that its selectors name, or nothing, then the
/// header counts. Units, functions, parameters and routes play no part, only the path must be one
/// that nobody can read in two ways. Refuses with 400 where selectors disagree, and where a query
/// or call cannot be read that holds the label: it is not known where it should go. With
/// Budget::kInline whatever takes long is refused.
Checked<std::optional<std::string>> cluster_named(const RawRequest& raw,
                                                  const TsdbRules& rules,
                                                  Budget budget);
Checked<std::optional<std::string>> cluster_named(const RawRequest& raw, const ProfileRules& rules);

}  // namespace ceems::gate
