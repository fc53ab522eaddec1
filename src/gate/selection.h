#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gate/request.h"
#include "promql/ast.h"
#include "promql/parser.h"

namespace ceems::gate {

/// Which series a user may be shown: those of units, told by labels.
struct SelectionRules {
  std::string unit_label = "uuid";  ///< "service_name" of profiles
  std::string cluster_label = "ceems_id";
  /// Metrics that everybody may see. A selector must name one with "=" or in front.
  std::set<std::string, std::less<>> shared_metrics = {"ceems_emissions_gCo2_kWh"};
  /// Labels that backends take out of answers: functions must not copy them to others.
  std::vector<std::string> hidden_labels = {};
  /// Labels that begin with "__" and may be selected by all the same. The others are the server's
  /// own: Mimir runs whatever queries `__queries__` holds, unchecked.
  std::vector<std::string> internal_labels = {"__name__", "__type__", "__unit__"};
  /// Refuses what would become another selector when written without escapes (survives_raw()).
  bool raw_safe = false;
  std::size_t most_units = 1000;   ///< ids that one request may name
  std::size_t longest_unit = 512;  ///< bytes; no longer one is anybody's
  /// Bytes that confine() may add to a request.
  std::size_t longest_confined = std::size_t{1} << 20U;
  promql::ParseOptions language = {};
};

/// How much a decision may take.
enum class Effort : std::uint8_t {
  kAtOnce,  ///< microseconds: what needs more is refused
  kAny,
};

/// The selectors of a request, checked one by one (docs/lb/access.md): each must be confined to
/// units by "=" or by a pattern with few words, none of them empty. What selectors exclude never
/// grants anything. Not thread-safe.
class Selection {
 public:
  /// `rules` must outlive the selection.
  explicit Selection(const SelectionRules& rules, Effort effort = Effort::kAny)
      : rules_(&rules), effort_(effort) {}

  /// Takes in every selector of a query. The tree must outlive confine().
  Checked<bool> add(promql::Expr& query);
  /// Takes in what was told about the same query before: nothing of it was open.
  void add_known(const std::set<std::string, std::less<>>& units,
                 const std::optional<std::string>& cluster);
  /// Takes in a selector that stands alone.
  Checked<bool> add(promql::VectorSelector& selector);

  /// All units that are named, sorted.
  [[nodiscard]] const std::set<std::string, std::less<>>& units() const { return units_; }
  /// The cluster that selectors name; all must name the same.
  [[nodiscard]] const std::optional<std::string>& cluster() const { return cluster_; }
  /// True where a selector without unit stands: only confine() makes the request one that may pass.
  [[nodiscard]] bool is_open() const { return !open_.empty(); }

  /// Adds a matcher of these units to each open selector. Refuses, and changes nothing, where that
  /// makes the request too long. Neither `units` nor one of them may be empty.
  Checked<bool> confine(const std::set<std::string, std::less<>>& units);

  /// Adds the cluster's label to each selector that names none, but to those of shared metrics.
  void pin(const std::string& cluster);

 private:
  Checked<bool> take_cluster(const promql::Matcher& matcher);
  /// Refuses names and texts that servers take for more than they are (selector_rules.h).
  [[nodiscard]] Checked<bool> check_texts(const promql::VectorSelector& selector) const;
  [[nodiscard]] bool takes_long(const promql::Matcher& matcher) const;
  [[nodiscard]] Checked<bool> check_functions(const promql::Expr& query) const;
  [[nodiscard]] bool copies_hidden(const promql::Call& call) const;

  const SelectionRules* rules_;
  Effort effort_;
  std::set<std::string, std::less<>> units_;
  std::optional<std::string> cluster_;
  /// Of the matcher whose units were taken in last.
  std::optional<promql::MatchOperator> last_op_;
  std::string last_pattern_;
  std::vector<promql::VectorSelector*> open_;
  std::vector<promql::VectorSelector*> of_any_cluster_;
};

}  // namespace ceems::gate
