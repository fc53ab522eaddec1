#include "tool/rules/render.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "tool/rules/promql.h"

namespace ceems::tool::rules {
namespace {

bool is_plain(char c) {
  return is_word(c, "_-.");
}

/// Words that YAML does not read as text.
bool is_special(std::string_view text) {
  const std::string lower = to_lower(text);
  return lower == "true" || lower == "false" || lower == "yes" || lower == "no" || lower == "on" ||
         lower == "off" || lower == "null" || lower == "y" || lower == "n" || lower == ".inf" ||
         lower == ".nan";
}

}  // namespace

std::string yaml_scalar(std::string_view text) {
  const bool letter = !text.empty() && ((text[0] >= 'a' && text[0] <= 'z') ||
                                        (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '_');
  const bool plain =
      letter && !is_special(text) &&
      std::ranges::all_of(text, [](char c) { return is_plain(c) || c == ':' || c == '/'; }) &&
      text.back() != ':';
  if (plain) {
    return std::string(text);
  }
  return fmt::format("\"{}\"", escaped(text));
}

std::string rule_file(const std::vector<Group>& groups) {
  std::string out = "---\ngroups:\n";
  for (const Group& group : groups) {
    out += fmt::format("  - name: {}\n    interval: {}\n    rules:\n", yaml_scalar(group.name),
                       group.interval);
    for (const Rule& rule : group.rules) {
      out += fmt::format("      - record: {}\n        expr: |-\n", rule.record);
      std::string_view rest = rule.expression;
      while (!rest.empty()) {
        out += fmt::format("          {}\n", take_until(rest, '\n'));
      }
      if (!rule.labels.empty()) {
        out += "        labels:\n";
      }
      for (const auto& [name, value] : rule.labels) {
        out += fmt::format("          {}: {}\n", name, yaml_scalar(value));
      }
    }
  }
  return out;
}

std::string FileNames::name(std::string_view stem, std::string_view suffix) {
  std::string name(stem.substr(0, 200));
  std::ranges::replace_if(name, [](char c) { return !is_plain(c); }, '_');
  if (name.empty() || name.front() == '.') {
    name.insert(name.begin(), '_');
  }
  name += suffix;
  while (true) {
    const int count = ++used_[name];
    if (count == 1) {
      return name;
    }
    name = fmt::format("{}-{}{}", name.substr(0, name.size() - suffix.size()), count, suffix);
  }
}

}  // namespace ceems::tool::rules
