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

Checked<std::optional<std::string>> cluster_named(const ParsedRequest& received,
                                                  const TsdbRules& rules,
                                                  Budget budget) {
  if (const auto& path = received.path(); !path) {
    return std::unexpected(path.error());
  }
  const std::string_view label = rules.selection.cluster_label;
  promql::ParseOptions language = rules.selection.language;
  language.experimental = true;
  language.max_bytes = kMaxQueryBytes;
  language.patterns.check = false;  // the server checks them
  NamedClusters clusters(
      label, budget == Budget::kInline ? kInlineSteps : promql::WorkBudget::kDefaultSteps);
  const auto read_form = [&](std::string_view form,
                             const Checked<Fields>& fields) -> Checked<bool> {
    if (!fields) {
      return form.contains(label)
                 ? Checked<bool>(std::unexpected(cannot_tell(label, fields.error().message)))
                 : true;
    }
    for (const auto& [name, value] : *fields) {
      if (name != "query" && name != "match[]") {
        continue;
      }
      CEEMS_TRY(read_text(clusters, value, name != "query", label, language, budget));
    }
    return true;
  };
  auto read = read_form(received.query_text(), received.parameters());
  const RawRequest& raw = received.raw();
  if (read &&
      (raw.content_encoding.empty() || same_in_any_case(raw.content_encoding, "identity"))) {
    read = read_form(raw.body, received.posted());
  }
  if (!read) {
    return std::unexpected(std::move(read).error());
  }
  return clusters.only();
}

Checked<std::optional<std::string>> cluster_named(const ParsedRequest& received,
                                                  const ProfileRules& rules) {
  if (const auto& path = received.path(); !path) {
    return std::unexpected(path.error());
  }
  const std::string_view label = rules.selection.cluster_label;
  NamedClusters clusters(label);
  const auto call = ProfileRequest::read(received, rules, &clusters);
  if (call) {
    return clusters.only();
  }
  // Other paths, such as those to which profiles are sent, have no selectors.
  const bool is_call = call.error().reason != "path" && call.error().reason != "method";
  if (is_call && received.raw().body.contains(label)) {
    return std::unexpected(cannot_tell(label, call.error().message));
  }
  return std::nullopt;
}

}  // namespace ceems::gate
