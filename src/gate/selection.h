#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/request.h"
#include "promql/ast.h"
#include "promql/parser.h"

namespace ceems::gate {

/// Which series a user may select: those with labels of the user's units.
struct SelectionRules {
  std::string unit_label = "uuid";  ///< "service_name" for profiles
  std::string cluster_label = "ceems_id";
  /// Metrics that everybody may see. A selector must name one in front of the braces or with "=".
  std::set<std::string, std::less<>> shared_metrics = {"ceems_emissions_gCo2_kWh"};
  /// Labels that are removed from answers. Functions must not copy them to other labels.
  std::vector<std::string> hidden_labels = {};
  /// Labels that begin with "__" but may be used in selectors. All others belong to the server:
  /// Mimir, for example, runs the queries in `__queries__` without checks.
  std::vector<std::string> internal_labels = {"__name__", "__type__", "__unit__"};
  /// Refuses open selectors, instead of leaving them to confine().
  bool refuse_open = false;
  /// Refuses texts that would become another selector when written without escapes
  /// (survives_raw()).
  bool raw_safe = false;
  std::size_t max_units = 10'000;    ///< IDs in one request
  std::size_t max_unit_bytes = 512;  ///< length of an ID
  /// Bytes that confine() may add to a request.
  std::size_t max_confined_bytes = std::size_t{1} << 20U;
  /// The work for the patterns of a request.
  std::size_t max_steps = promql::WorkBudget::kDefaultSteps;
  promql::ParseOptions language = {};
};

/// How long a decision may take.
enum class Budget : std::uint8_t {
  kInline,  ///< microseconds; what takes longer is refused
  kFull,
};

/// The selectors of a request, checked one by one (docs/lb/access.md). Each must name its units, by
/// "=" or by a pattern with few alternatives, none of which is empty. Excluding units never grants
/// access. Not thread-safe.
class Selection {
 public:
  /// `rules` and what `patterns` points to must outlive the selection.
  explicit Selection(const SelectionRules& rules,
                     Budget budget = Budget::kFull,
                     const promql::PatternOptions& patterns = {})
      : rules_(&rules), budget_(budget), patterns_(patterns) {}

  /// Checks and adds every selector of a query. `query` must stay alive until confine() returns.
  Checked<bool> add(promql::Expr& query);
  /// Adds the units and the cluster of a query that was checked before and had no open selector.
  void add_known(const std::set<std::string, std::less<>>& units,
                 const std::optional<std::string>& cluster);
  /// Checks and adds a selector that is not part of a query.
  Checked<bool> add(promql::VectorSelector& selector);

  /// All units that the selectors name.
  [[nodiscard]] const std::set<std::string, std::less<>>& units() const { return units_; }
  /// The cluster that the selectors name, if any does. All of them must name the same one.
  [[nodiscard]] const std::optional<std::string>& cluster() const { return cluster_; }
  /// Whether there is an open selector, one without units. The request may pass only after
  /// confine().
  [[nodiscard]] bool is_open() const { return !open_.empty(); }

  /// Adds a matcher for these units to each open selector. If that makes the request too long, it
  /// refuses and changes nothing. Neither `units` nor any of them may be empty.
  Checked<bool> confine(const std::set<std::string, std::less<>>& units);

  /// Lets selectors take any series that has a unit, where the server confines the whole request to
  /// units of the user instead (unit_filters.h): the selectors that confine() has confined or, if
  /// there are none, the ones that name units, if all of them do so by the same pattern. Returns
  /// whether there are any; otherwise nothing changes.
  bool widen();
  [[nodiscard]] const SelectionRules& rules() const { return *rules_; }
  /// Whether a selector is that of a shared metric and names no unit.
  [[nodiscard]] bool has_shared() const { return has_shared_; }

  /// Adds a matcher for the cluster to each selector that names none, except selectors of shared
  /// metrics.
  void pin(const std::string& cluster);

 private:
  /// Adds the units that the matcher names. Returns whether it names any.
  Checked<bool> take_units(const promql::Matcher& matcher);
  /// The values that the matcher accepts, or nothing if it accepts anything.
  [[nodiscard]] Checked<promql::Language> values_of(const promql::Matcher& matcher) const;
  Checked<bool> take_cluster(const promql::Matcher& matcher);
  /// Refuses texts that some servers interpret differently (see below).
  [[nodiscard]] Checked<bool> check_texts(const promql::VectorSelector& selector) const;
  [[nodiscard]] bool exceeds_budget(const promql::Matcher& matcher) const;
  [[nodiscard]] Checked<bool> check_functions(const promql::Expr& query) const;
  [[nodiscard]] bool copies_hidden(const promql::Call& call) const;

  const SelectionRules* rules_;
  Budget budget_;
  promql::PatternOptions patterns_;
  std::set<std::string, std::less<>> units_;
  std::optional<std::string> cluster_;
  /// The matcher whose units were added last: most queries repeat it.
  std::optional<promql::MatchOperator> last_op_;
  std::string last_pattern_;
  std::vector<promql::VectorSelector*> open_;
  /// A matcher of units: its selector, and its index there.
  using UnitMatcher = std::pair<promql::VectorSelector*, std::size_t>;
  std::vector<UnitMatcher> confined_;  ///< added by confine()
  std::vector<UnitMatcher> named_;     ///< of the request
  bool has_shared_ = false;
  std::vector<promql::VectorSelector*> of_any_cluster_;
};

// Texts that selectors of users must not contain, whatever units they name, because some servers
// interpret them as more than a selector.

/// Whether the matcher keeps its meaning when its value is written between double quotes without
/// escapes, as Pyroscope's second read path does before
/// https://github.com/grafana/pyroscope/pull/4496. False if there are quotes, control characters,
/// invalid UTF-8 or backslashes. Patterns may contain backslashes that are not an escape in a
/// string
/// ("\."): the server then rejects the text instead of misreading it.
bool survives_raw(const promql::Matcher& matcher);
/// The same for a text that is not a pattern.
bool survives_raw(std::string_view text);
/// Whether the name stays a single name when it is written without quotes.
bool is_raw_name(std::string_view name);

/// Whether the matcher of `__name__` may name a metric that begins with "__", which belongs to the
/// server. Mimir recognises `__embedded_queries__` by the text of the value, whatever the operator.
/// A pattern with few alternatives is judged by these. In any other pattern, "__" must not be where
/// a name may begin. No server recognises other spellings, such as "_{2}x.*".
bool may_name_internal(const promql::Matcher& matcher, const promql::PatternOptions& patterns = {});

Refusal raw_text();                              ///< 400
Refusal too_many_units(std::size_t limit);       ///< 400
Refusal too_much_work();                         ///< 400: the budget of the request is exhausted
Refusal info_without_selector();                 ///< 403: it would read any info series
Refusal internal_label(std::string_view label);  ///< 403

}  // namespace ceems::gate
