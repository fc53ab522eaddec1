#include "gate/selection.h"

#include <algorithm>
#include <variant>

#include "gate/selector_rules.h"
#include "promql/functions.h"
#include "promql/matcher/matcher.h"
#include "promql/selectors.h"

namespace ceems::gate {
namespace {

using promql::Matcher;
using promql::MatchOperator;
using promql::VectorSelector;

constexpr std::string_view kNameLabel = "__name__";
constexpr std::string_view kInternal = "__";  // how names of the server's own begin

/// The only name that series of the selector can have.
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

}  // namespace

Checked<bool> Selection::add(promql::Expr& query) {
  if (auto checked = check_functions(query); !checked) {
    return checked;
  }
  Checked<bool> outcome = true;
  promql::for_each_selector(query, [&](VectorSelector& selector) {
    if (outcome) {
      outcome = add(selector);
    }
  });
  return outcome;
}

Checked<bool> Selection::check_functions(const promql::Expr& query) const {
  bool fine = true;
  promql::for_each_node(query, [&](const promql::Expr& expr) {
    const auto* const call = std::get_if<promql::Call>(&expr.node);
    fine = fine && (call == nullptr || (!call->function->hidden_selector && !copies_hidden(*call)));
  });
  if (!fine) {
    return std::unexpected(forbidden_units("function"));
  }
  return true;
}

bool Selection::copies_hidden(const promql::Call& call) const {
  const bool join = call.function->name == "label_join";
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

/// Patterns of 1 KB may have words in thousands to spell out.
bool Selection::takes_long(const Matcher& matcher) const {
  return effort_ == Effort::kAtOnce && matcher.op == MatchOperator::kMatches &&
         !promql::is_words(matcher.value);
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
    if (matcher.label == kNameLabel) {
      if (takes_long(matcher)) {
        return std::unexpected(forbidden_units("effort"));
      }
      if (may_name_internal(matcher)) {
        return std::unexpected(internal_label(matcher.value));
      }
    }
    if (rules_->raw_safe && (!is_raw_name(matcher.label) || !survives_raw(matcher))) {
      return std::unexpected(raw_text());
    }
  }
  return true;
}

Checked<bool> Selection::add(VectorSelector& selector) {
  if (auto checked = check_texts(selector); !checked) {
    return checked;
  }
  bool confined = false;
  bool of_any_cluster = true;
  for (const Matcher& matcher : selector.matchers) {
    if (matcher.label == rules_->cluster_label) {
      if (auto taken = take_cluster(matcher); !taken) {
        return taken;
      }
      of_any_cluster = false;
    }
    if (matcher.label != rules_->unit_label) {
      continue;
    }
    if (last_op_ == matcher.op && last_pattern_ == matcher.value) {
      confined = true;  // its units were taken in: selectors of one query mostly name the same
      continue;
    }
    if (takes_long(matcher)) {
      return std::unexpected(forbidden_units("effort"));
    }
    const auto values = promql::accepted_values(matcher, {.words = rules_->most_units});
    if (!values) {
      continue;
    }
    if (std::ranges::find(*values, "") != values->end()) {
      return std::unexpected(forbidden_units("empty_unit"));
    }
    const auto too_long = [&](const std::string& value) {
      return value.size() > rules_->longest_unit;
    };
    if (std::ranges::any_of(*values, too_long)) {
      return std::unexpected(forbidden_units("foreign_unit"));
    }
    // Of several matchers of the label all sets must be the caller's, though their intersection
    // would do.
    units_.insert(values->begin(), values->end());
    last_op_ = matcher.op;
    last_pattern_ = matcher.value;
    confined = true;
  }
  if (units_.size() > rules_->most_units) {
    return std::unexpected(forbidden_units("too_many_units"));
  }
  if (!confined) {
    if (const auto name = only_name(selector); name && rules_->shared_metrics.contains(*name)) {
      return true;
    }
    open_.push_back(&selector);
  }
  if (of_any_cluster) {
    of_any_cluster_.push_back(&selector);
  }
  return true;
}

Checked<bool> Selection::take_cluster(const Matcher& matcher) {
  if (takes_long(matcher)) {
    return std::unexpected(forbidden_units("effort"));
  }
  const auto values = promql::accepted_values(matcher, {.words = 2});
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
  if (own.value.size() * open_.size() > rules_->longest_confined) {
    return std::unexpected(forbidden_units("too_many_units"));
  }
  for (VectorSelector* const selector : open_) {
    selector->matchers.push_back(own);
  }
  open_.clear();
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

}  // namespace ceems::gate
