#include "metrics/desc.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace ceems::metrics {
bool is_metric_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && has_only_words(name, "_:");
}

bool is_label_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && !name.starts_with("__") &&
         has_only_words(name, "_");
}

std::string sanitize_name(std::string_view text) {
  const auto end_of_run = [text](std::size_t from, auto&& belongs) {
    while (from < text.size() && belongs(text[from])) {
      ++from;
    }
    return from;
  };
  const auto is_underscore = [](char c) { return c == '_'; };
  const auto is_foreign = [](char c) { return !is_word(c, "_"); };
  std::string name;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t foreign = end_of_run(at, is_underscore);
    const std::size_t after = end_of_run(foreign, is_foreign);
    if (after > foreign) {
      name.push_back('_');
      at = end_of_run(after, is_underscore);
    } else {
      const std::size_t word = std::max(foreign, at + 1);
      name.append(text.substr(at, word - at));
      at = word;
    }
  }
  return name;
}

Desc::Desc(std::string family,
           std::string help_text,
           Type family_type,
           std::vector<std::string> labels)
    : name(std::move(family)),
      help(std::move(help_text)),
      type(family_type),
      label_names(std::move(labels)),
      sorted(label_names.size()) {
  CEEMS_CHECK(is_metric_name(name));
  CEEMS_CHECK(std::ranges::all_of(label_names, is_label_name));
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::sort(sorted, {}, [this](std::size_t i) { return label_names[i]; });
  CEEMS_CHECK(std::ranges::adjacent_find(sorted, [this](std::size_t a, std::size_t b) {
                return label_names[a] == label_names[b];
              }) == sorted.end());
}

}  // namespace ceems::metrics
