#include "gate/named_clusters.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/strings.h"
#include "promql/matcher/matcher.h"
#include "promql/selectors.h"
#include "promql/text/characters.h"
#include "promql/text/literal.h"

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
  if (!text.contains(label) && !text.contains('\\')) {
    return true;
  }
  if (matches) {
    if (auto parsed = promql::parse_selector(text, language, true)) {
      clusters.add(*parsed);
      return true;
    }
  } else if (auto parsed = promql::parse(text, language)) {
    promql::for_each_selector(
        **parsed, [&](const promql::VectorSelector& selector) { clusters.add(selector); });
    return true;
  }
  if (budget == Budget::kInline) {
    return std::unexpected(
        forbidden_units("budget"));  // maybe only a pattern that is not compiled yet
  }
  clusters.add_found_in(text);  // in the language of another server or release
  return true;
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

/// The string with its quotes at the start of the text, up to the end of the text if it has none.
std::string_view string_at_start(std::string_view text) {
  std::size_t end = 1;
  while (end < text.size() && text[end] != text.front()) {
    end += text[end] == '\\' && text.front() != '`' ? 2 : 1;
  }
  return text.substr(0, end + 1);
}

bool begins_string(std::string_view text) {
  return !text.empty() && (text[0] == '"' || text[0] == '\'' || text[0] == '`');
}

/// The matcher of `label` whose label ends where `rest` begins: an operator and a string.
std::optional<promql::Matcher> matcher_behind(std::string_view label, std::string_view rest) {
  rest = without_blanks(rest);
  promql::Matcher matcher;
  matcher.label = label;
  if (rest.starts_with("=~")) {
    matcher.op = promql::MatchOperator::kMatches;
    rest.remove_prefix(1);
  } else if (!rest.starts_with('=')) {
    return std::nullopt;
  }
  rest = without_blanks(rest.substr(1));
  auto value =
      begins_string(rest) ? promql::unquote(string_at_start(rest)) : std::optional<std::string>();
  if (!value) {
    return std::nullopt;
  }
  matcher.value = std::move(*value);
  return matcher;
}

}  // namespace

void NamedClusters::add(const promql::VectorSelector& selector) {
  for (const promql::Matcher& matcher : selector.matchers) {
    if (matcher.label == label_) {
      add(matcher);
    }
  }
}

void NamedClusters::add(const promql::Matcher& matcher) {
  if (auto words = promql::accepted_values(matcher, {}, {.work = &work_})) {
    found_.insert(words->begin(), words->end());
  }
  found_.erase("");
}

void NamedClusters::add_found_in(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = 1;
    bool is_label = false;
    if (begins_string(text)) {
      const std::string_view quoted = string_at_start(text);
      length = quoted.size();
      is_label = promql::unquote(quoted) == label_;
    } else if (text.front() == '#') {
      length = std::min(text.find_first_of("\r\n"), text.size());
    } else if (promql::kInMetric.contains(text.front())) {
      const auto* const end = std::ranges::find_if_not(
          text, [](char byte) { return promql::kInMetric.contains(byte) || byte == '.'; });
      length = static_cast<std::size_t>(end - text.begin());
      is_label = text.substr(0, length) == label_;
    }
    text.remove_prefix(length);
    const auto matcher = is_label ? matcher_behind(label_, text) : std::nullopt;
    if (matcher) {
      add(*matcher);
    }
  }
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
  const auto read_form = [&](const Checked<Fields>& fields) -> Checked<bool> {
    if (!fields) {  // what it means is left to the server
      for (const std::string& text : received.queries()) {
        clusters.add_found_in(text);
      }
      return true;
    }
    for (const auto& [name, value] : *fields) {
      if (name != "query" && name != "match[]") {
        continue;
      }
      CEEMS_TRY(read_text(clusters, value, name != "query", label, language, budget));
    }
    return true;
  };
  auto read = read_form(received.parameters());
  const RawRequest& raw = received.raw();
  if (read &&
      (raw.content_encoding.empty() || same_in_any_case(raw.content_encoding, "identity"))) {
    read = read_form(received.posted());
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
