#include "gate/selection.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/result.h"
#include "base/utf8.h"
#include "promql/functions.h"
#include "promql/matcher/matcher.h"
#include "promql/selectors.h"
#include "promql/text/characters.h"

namespace ceems::gate {
namespace {

using promql::Matcher;
using promql::MatchOperator;
using promql::VectorSelector;

constexpr std::string_view kNameLabel = "__name__";
constexpr std::string_view kInternal = "__";  // prefix of names that belong to the server
constexpr promql::ByteSet kInRawName = promql::ByteSet::letters_digits_and(".:/-");
/// After a backslash, these are literal characters in a pattern and not an escape in a Go string.
constexpr promql::ByteSet kNoEscape(".+*?()[]{}|^$-/");

/// The metric name, if all series of the selector must have the same one.
std::optional<std::string_view> only_name(const VectorSelector& selector) {
  if (!selector.name.empty()) {
    return selector.name;
  }
  for (const Matcher& matcher : selector.matchers) {
    if (matcher.label == kNameLabel && matcher.op == MatchOperator::kEqual) {
      return matcher.value;
    }
  }
  return std::nullopt;
}

bool is_control(char byte) {
  constexpr unsigned char kBlank = 0x20;
  constexpr unsigned char kDelete = 0x7F;
  const auto code = static_cast<unsigned char>(byte);
  return code < kBlank || code == kDelete;
}

/// Whether "__" is where a name may begin: at the start, or after something that is not a literal.
bool begins_internal_somewhere(std::string_view pattern) {
  for (std::size_t at = pattern.find(kInternal); at != std::string_view::npos;
       at = pattern.find(kInternal, at + 1)) {
    if (at == 0 || !promql::kInMetric.contains(pattern[at - 1])) {
      return true;
    }
  }
  return false;
}

bool is_exhausted(const promql::PatternOptions& patterns) {
  return patterns.work != nullptr && patterns.work->exhausted();
}

}  // namespace

Checked<bool> Selection::add(promql::Expr& query) {
  CEEMS_TRY(check_functions(query));
  Checked<bool> outcome = true;
  promql::for_each_selector(query, [&](VectorSelector& selector) {
    if (outcome) {
      outcome = add(selector);
    }
  });
  return outcome;
}

Checked<bool> Selection::check_functions(const promql::Expr& query) const {
  Checked<bool> outcome = true;
  promql::for_each_node(query, [&](const promql::Expr& expr) {
    const auto* const call = std::get_if<promql::Call>(&expr.node);
    if (call == nullptr || !outcome) {
      return;
    }
    if (call->function->hidden_selector && call->arguments.size() < 2) {
      outcome = std::unexpected(info_without_selector());
    } else if (copies_hidden(*call)) {
      outcome = std::unexpected(forbidden_units("function"));
    }
  });
  return outcome;
}

bool Selection::copies_hidden(const promql::Call& call) const {
  const bool join = call.function->name == "label_join";
  if (!rules_->hidden_labels.empty() && call.function->since == promql::Since::kMetricsql &&
      call.function->name.starts_with("label")) {
    return true;
  }
  if (rules_->hidden_labels.empty() || (!join && call.function->name != "label_replace")) {
    return false;
  }
  // label_replace(v, target, replacement, SOURCE, pattern); label_join(v, target, separator,
  // SOURCE...)
  constexpr std::size_t kSource = 3;
  const std::size_t end = join ? call.arguments.size() : kSource + 1;
  for (std::size_t i = kSource; i < end; ++i) {
    const auto* const text = std::get_if<promql::StringLiteral>(&call.arguments[i]->node);
    if (text == nullptr ||
        std::ranges::find(rules_->hidden_labels, text->value) != rules_->hidden_labels.end()) {
      return true;
    }
  }
  return false;
}

void Selection::add_known(const std::set<std::string, std::less<>>& units,
                          const std::optional<std::string>& cluster) {
  units_ = units;
  cluster_ = cluster;
}

/// A pattern of 1 KB may expand to thousands of words.
bool Selection::exceeds_budget(const Matcher& matcher) const {
  return budget_ == Budget::kInline && matcher.op == MatchOperator::kMatches &&
         !promql::is_list(matcher.value);
}

Checked<bool> Selection::check_texts(const VectorSelector& selector) const {
  if (selector.name.starts_with(kInternal)) {
    return std::unexpected(internal_label(selector.name));
  }
  if (rules_->raw_safe && !is_raw_name(selector.name)) {
    return std::unexpected(raw_text());
  }
  for (const Matcher& matcher : selector.matchers) {
    if (matcher.label.starts_with(kInternal) &&
        std::ranges::find(rules_->internal_labels, matcher.label) ==
            rules_->internal_labels.end()) {
      return std::unexpected(internal_label(matcher.label));
    }
    // VictoriaMetrics stores the name of a metric as the value of a label without a name.
    if (matcher.label == kNameLabel || matcher.label.empty()) {
      if (exceeds_budget(matcher)) {
        return std::unexpected(forbidden_units("budget"));
      }
      const bool internal = may_name_internal(matcher, patterns_);
      if (is_exhausted(patterns_)) {
        return std::unexpected(too_much_work());
      }
      if (internal) {
        return std::unexpected(internal_label(matcher.value));
      }
    }
    if (rules_->raw_safe &&
        (matcher.label.empty() || !is_raw_name(matcher.label) || !survives_raw(matcher))) {
      return std::unexpected(raw_text());
    }
  }
  return true;
}

Checked<bool> Selection::add(VectorSelector& selector) {
  CEEMS_TRY(check_texts(selector));
  bool confined = false;
  bool of_any_cluster = true;
  for (const Matcher& matcher : selector.matchers) {
    if (matcher.label == rules_->cluster_label) {
      CEEMS_TRY(take_cluster(matcher));
      of_any_cluster = false;
    }
    if (matcher.label != rules_->unit_label) {
      continue;
    }
    CEEMS_TRY(taken, take_units(matcher));
    confined = confined || taken;
    if (taken) {
      named_.emplace_back(&selector, static_cast<std::size_t>(&matcher - selector.matchers.data()));
    }
  }
  if (units_.size() > rules_->max_units) {
    return std::unexpected(too_many_units(rules_->max_units));
  }
  if (!confined) {
    if (const auto name = only_name(selector); name && rules_->shared_metrics.contains(*name)) {
      has_shared_ = true;
      return true;
    }
    if (rules_->refuse_open) {
      return std::unexpected(forbidden_units("no_unit"));
    }
    open_.push_back(&selector);
  }
  if (of_any_cluster) {
    of_any_cluster_.push_back(&selector);
  }
  return true;
}

Checked<promql::Language> Selection::values_of(const Matcher& matcher) const {
  if (exceeds_budget(matcher)) {
    return std::unexpected(forbidden_units("budget"));
  }
  if (matcher.op == MatchOperator::kMatches && promql::is_list(matcher.value)) {
    return promql::listed_words(matcher.value, rules_->max_units);
  }
  auto values = promql::accepted_values(matcher, {}, patterns_);
  if (is_exhausted(patterns_)) {
    return std::unexpected(too_much_work());
  }
  return values;
}

Checked<bool> Selection::take_units(const Matcher& matcher) {
  if (last_op_ == matcher.op && last_pattern_ == matcher.value) {
    return true;  // its units are already added: most selectors of a query name the same
  }
  CEEMS_TRY(accepted, values_of(matcher));
  if (!accepted) {
    const bool is_list = matcher.op == MatchOperator::kMatches && promql::is_list(matcher.value);
    if (is_list && rules_->refuse_open) {
      return std::unexpected(too_many_units(rules_->max_units));
    }
    return false;
  }
  const std::vector<std::string>& values = *accepted;
  if (std::ranges::find(values, "") != values.end()) {
    return std::unexpected(forbidden_units("empty_unit"));
  }
  const auto too_long = [&](const std::string& value) {
    return value.size() > rules_->max_unit_bytes;
  };
  if (std::ranges::any_of(values, too_long)) {
    return std::unexpected(forbidden_units("foreign_unit"));
  }
  constexpr std::size_t kStepsPerUnit = 2;
  if (!promql::take_steps(patterns_.work, kStepsPerUnit * values.size())) {
    return std::unexpected(too_much_work());
  }
  // If the label has several matchers, the user must own the units of all of them, although their
  // intersection would be sufficient.
  units_.insert(values.begin(), values.end());
  last_op_ = matcher.op;
  last_pattern_ = matcher.value;
  return true;
}

Checked<bool> Selection::take_cluster(const Matcher& matcher) {
  CEEMS_TRY(values, values_of(matcher));
  if (!values || values->size() != 1 || values->front().empty() ||
      (cluster_ && *cluster_ != values->front())) {
    return std::unexpected(forbidden_units("cluster_label"));
  }
  cluster_ = values->front();
  return true;
}

Checked<bool> Selection::confine(const std::set<std::string, std::less<>>& units) {
  Matcher own{.label = rules_->unit_label, .op = MatchOperator::kMatches, .value = {}, .offset = 0};
  if (units.size() == 1) {
    own.op = MatchOperator::kEqual;
    own.value = *units.begin();
  } else {
    for (const std::string& unit : units) {
      own.value += own.value.empty() ? "" : "|";
      own.value += promql::quote_pattern(unit);
    }
  }
  if (rules_->raw_safe && !survives_raw(own)) {
    return std::unexpected(raw_text());
  }
  if (own.value.size() * open_.size() > rules_->max_confined_bytes) {
    return std::unexpected(bad_data(
        fmt::format("{} selectors without a unit, each confined to your {} units, make the "
                    "request longer than {} bytes: name units",
                    open_.size(), units.size(), rules_->max_confined_bytes),
        "too_many_units"));
  }
  for (VectorSelector* const selector : open_) {
    confined_.emplace_back(selector, selector->matchers.size());
    selector->matchers.push_back(own);
  }
  open_.clear();
  return true;
}

bool Selection::widen() {
  const auto matcher_of = [](const UnitMatcher& place) -> Matcher& {
    return place.first->matchers[place.second];
  };
  const auto& places = confined_.empty() ? named_ : confined_;
  // With other units in one selector, or two matchers, the sum of all is not what each selects.
  const bool same = std::ranges::all_of(places, [&](const UnitMatcher& place) {
    return matcher_of(place).op == matcher_of(places.front()).op &&
           matcher_of(place).value == matcher_of(places.front()).value;
  });
  if (places.empty() || !same || !open_.empty()) {
    return false;
  }
  for (const UnitMatcher& place : places) {
    matcher_of(place).op = MatchOperator::kNotEqual;
    matcher_of(place).value.clear();
  }
  return true;
}

void Selection::pin(const std::string& cluster) {
  for (VectorSelector* const selector : of_any_cluster_) {
    selector->matchers.push_back({.label = rules_->cluster_label,
                                  .op = MatchOperator::kEqual,
                                  .value = cluster,
                                  .offset = 0});
  }
  of_any_cluster_.clear();
}

bool survives_raw(std::string_view text) {
  return is_utf8(text) && std::ranges::none_of(text, [](char byte) {
           return byte == '"' || byte == '\\' || is_control(byte);
         });
}

bool survives_raw(const Matcher& matcher) {
  if (matcher.op == MatchOperator::kEqual || matcher.op == MatchOperator::kNotEqual) {
    return survives_raw(std::string_view(matcher.value));
  }
  std::string plain;  // without harmless backslashes and the characters after them
  const std::string_view pattern = matcher.value;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size() && kNoEscape.contains(pattern[i + 1])) {
      ++i;
    } else {
      plain += pattern[i];
    }
  }
  return survives_raw(std::string_view(plain));
}

bool is_raw_name(std::string_view name) {
  return kInRawName.contains_all(name);
}

bool may_name_internal(const Matcher& matcher, const promql::PatternOptions& patterns) {
  const std::string_view value = matcher.value;
  if (value.starts_with(kInternal)) {
    return true;
  }
  if (matcher.op != MatchOperator::kMatches) {
    return false;
  }
  if (promql::is_words(value)) {
    return value.contains("|__");
  }
  const auto words = promql::known_language(value, {}, patterns);
  return words ? std::ranges::any_of(
                     *words, [](const std::string& word) { return word.starts_with(kInternal); })
               : begins_internal_somewhere(value);
}

Refusal raw_text() {
  return bad_data(
      "selectors of profiles must not contain quotes, control characters or backslashes, except "
      "backslashes before punctuation in patterns",
      "raw_text");
}

Refusal too_many_units(std::size_t limit) {
  return bad_data(
      fmt::format("the request is for more than {} units, which is the limit: name fewer", limit),
      "too_many_units");
}

Refusal too_much_work() {
  return bad_data(
      "the patterns of the request take too much work to check: use fewer or simpler ones", "work");
}

Refusal info_without_selector() {
  return {.message =
              "info() needs a second argument that selects own units, as in "
              "info(v, {uuid=\"1\"})",
          .reason = "function"};
}

Refusal internal_label(std::string_view label) {
  return {.message = fmt::format("'{}' is an internal name, which users must not select", label),
          .reason = "internal_label"};
}

}  // namespace ceems::gate
