#include "gate/named_clusters.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/strings.h"
#include "promql/matcher/matcher.h"
#include "promql/selectors.h"

namespace ceems::gate {
namespace {

constexpr std::string_view kForm = "application/x-www-form-urlencoded";
constexpr std::size_t kInlineSteps = 1000;
constexpr std::size_t kMaxQueryBytes = std::size_t{1} << 20U;  // the limit of bodies

Refusal cannot_tell(std::string_view label, std::string_view why) {
  return bad_data(fmt::format("cannot tell which cluster '{}' names: {}", label, why),
                  "cluster_label");
}

/// Reads one PromQL text: a query or, if `matches`, a selector of match[].
Checked<bool> read_text(NamedClusters& clusters,
                        std::string_view text,
                        bool matches,
                        std::string_view label,
                        const promql::ParseOptions& language,
                        Budget budget) {
  // A quoted label name may contain escapes.
  const bool has_label = text.contains(label);
  if (!has_label && !text.contains('\\')) {
    return true;
  }
  std::optional<std::string> problem;
  if (matches) {
    auto parsed = promql::parse_selector(text, language, true);
    if (parsed) {
      clusters.add(*parsed);
    } else {
      problem = parsed.error().text();
    }
  } else {
    auto parsed = promql::parse(text, language);
    if (parsed) {
      promql::for_each_selector(
          **parsed, [&](const promql::VectorSelector& selector) { clusters.add(selector); });
    } else {
      problem = parsed.error().text();
    }
  }
  if (!problem) {
    return true;
  }
  if (budget == Budget::kInline) {
    return std::unexpected(
        forbidden_units("budget"));  // maybe only a pattern that is not compiled yet
  }
  if (has_label) {
    return std::unexpected(cannot_tell(label, *problem));
  }
  return true;
}

bool is_form(const RawRequest& raw) {
  return same_in_any_case(media_type(raw.content_type), kForm) &&
         (raw.content_encoding.empty() || same_in_any_case(raw.content_encoding, "identity"));
}

}  // namespace

void NamedClusters::add(const promql::VectorSelector& selector) {
  for (const promql::Matcher& matcher : selector.matchers) {
    if (matcher.label != label_) {
      continue;
    }
    if (auto words = promql::accepted_values(matcher, {}, {.work = &work_})) {
      found_.insert(words->begin(), words->end());
    }
  }
  found_.erase("");
}

Checked<std::optional<std::string>> NamedClusters::only() const {
  if (work_.exhausted()) {
    return std::unexpected(too_much_work());
  }
  if (found_.size() > 1) {
    return std::unexpected(bad_data(
        fmt::format("selectors name several clusters by '{}' ('{}' and '{}'): select one at a time",
                    label_, *found_.begin(), *std::next(found_.begin())),
        "cluster_label"));
  }
  return found_.empty() ? std::nullopt : std::optional(*found_.begin());
}

Checked<std::optional<std::string>> cluster_named(const RawRequest& raw,
                                                  const TsdbRules& rules,
                                                  Budget budget) {
  CEEMS_TRY(target, parse_target(raw.target));
  const std::string_view label = rules.selection.cluster_label;
  promql::ParseOptions language = rules.selection.language;
  language.experimental = true;
  language.max_bytes = kMaxQueryBytes;
  language.patterns.check = false;  // the server checks them
  NamedClusters clusters(
      label, budget == Budget::kInline ? kInlineSteps : promql::WorkBudget::kDefaultSteps);
  for (const std::string_view form : {target.query, is_form(raw) ? raw.body : std::string_view{}}) {
    const auto fields = parse_form(form);
    if (!fields) {
      if (form.contains(label)) {
        return std::unexpected(cannot_tell(label, fields.error().message));
      }
      continue;
    }
    for (const auto& [name, value] : *fields) {
      if (name != "query" && name != "match[]") {
        continue;
      }
      CEEMS_TRY(read_text(clusters, value, name != "query", label, language, budget));
    }
  }
  return clusters.only();
}

Checked<std::optional<std::string>> cluster_named(const RawRequest& raw,
                                                  const ProfileRules& rules) {
  CEEMS_TRY(parse_target(raw.target));
  const std::string_view label = rules.selection.cluster_label;
  NamedClusters clusters(label);
  const auto call = ProfileRequest::read(raw, rules, &clusters);
  if (call) {
    return clusters.only();
  }
  // Other paths, such as those to which profiles are sent, have no selectors.
  const bool is_call = call.error().reason != "path" && call.error().reason != "method";
  if (is_call && raw.body.contains(label)) {
    return std::unexpected(cannot_tell(label, call.error().message));
  }
  return std::nullopt;
}

}  // namespace ceems::gate
