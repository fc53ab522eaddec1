#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
  std::size_t max_units = 1000;      ///< ids that one request may name
  std::size_t max_unit_bytes = 512;  ///< bytes; no longer one is anybody's
  /// Bytes that confine() may add to a request.
  std::size_t max_confined_bytes = std::size_t{1} << 20U;
  promql::ParseOptions language = {};
};

/// How long a decision may take.
enum class Budget : std::uint8_t {
  kInline,  ///< microseconds: what needs more is refused
  kFull,
};

/// The selectors of a request, checked one by one (docs/lb/access.md): each must be confined to
/// units by "=" or by a pattern with few words, none of them empty. What selectors exclude never
/// grants anything. Not thread-safe.
class Selection {
 public:
  /// `rules` must outlive the selection.
  explicit Selection(const SelectionRules& rules, Budget budget = Budget::kFull)
      : rules_(&rules), budget_(budget) {}

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
  /// Refuses names and texts that servers take for more than they are (see below).
  [[nodiscard]] Checked<bool> check_texts(const promql::VectorSelector& selector) const;
  [[nodiscard]] bool exceeds_budget(const promql::Matcher& matcher) const;
  [[nodiscard]] Checked<bool> check_functions(const promql::Expr& query) const;
  [[nodiscard]] bool copies_hidden(const promql::Call& call) const;

  const SelectionRules* rules_;
  Budget budget_;
  std::set<std::string, std::less<>> units_;
  std::optional<std::string> cluster_;
  /// Of the matcher whose units were taken in last.
  std::optional<promql::MatchOperator> last_op_;
  std::string last_pattern_;
  std::vector<promql::VectorSelector*> open_;
  std::vector<promql::VectorSelector*> of_any_cluster_;
};

// What selectors of users may not hold, whatever units they name: texts that some servers take for
// more than a selector.

/// Would the matcher mean the same when its value is written between double quotes as it is,
/// without escapes? Pyroscope's second read path writes selectors so before
/// https://github.com/grafana/pyroscope/pull/4496. False for quotes, control characters, what is no
/// UTF-8, and backslashes; of patterns those backslashes will do that are no escape in a string
/// ("\."): there the server refuses the text instead of reading another one.
bool survives_raw(const promql::Matcher& matcher);
/// The same for a text that is no pattern.
bool survives_raw(std::string_view text);
/// A name that is no more than a name where it is written without quotes.
bool is_raw_name(std::string_view name);

/// May the matcher of `__name__` name a metric that begins with "__", which is the server's own?
/// Mimir's `__embedded_queries__` is known by the text of the value alone, under every operator. A
/// pattern with few words is judged by these. Of others it is refused when "__" stands where a name
/// may begin; what spells the same otherwise ("_{2}x.*") no server takes for that name.
bool may_name_internal(const promql::Matcher& matcher);

Refusal raw_text();                              ///< 400
Refusal internal_label(std::string_view label);  ///< 403

}  // namespace ceems::gate
