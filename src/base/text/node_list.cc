#include "base/text/node_list.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems {
namespace {

constexpr std::size_t kMaxNames = 65536;

/// Appends the numbers of "08-11,15"; returns false if the text is invalid.
bool expand_numbers(std::string_view text, std::vector<std::string>& numbers) {
  constexpr std::size_t kMaxDigits = 18;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
    if (!is_number(first, kMaxDigits) || !is_number(last, kMaxDigits)) {
      return false;
    }
    const auto low = parse_int(first).value_or(0);
    const auto high = parse_int(last).value_or(0);
    if (high < low || high - low >= kMaxNames || numbers.size() + (high - low) >= kMaxNames) {
      return false;
    }
    for (auto number = low; number <= high; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
    }
  }
  return true;
}

/// Removes the first entry, up to a comma outside brackets, and appends its names; returns false if
/// it is invalid.
bool expand_entry(std::string_view& rest, std::vector<std::string>& names) {
  std::vector<std::string> entry{""};
  while (!rest.empty() && rest.front() != ',') {
    if (rest.front() != '[') {
      const std::size_t end = std::min(rest.find_first_of("[],"), rest.size());
      if (end == 0) {
        return false;  // a bracket that was never opened
      }
      for (auto& name : entry) {
        name += rest.substr(0, end);
      }
      rest.remove_prefix(end);
      continue;
    }
    const std::size_t close = rest.find(']');
    std::vector<std::string> numbers;
    if (close == std::string_view::npos || !expand_numbers(rest.substr(1, close - 1), numbers) ||
        entry.size() * numbers.size() > kMaxNames) {
      return false;
    }
    rest.remove_prefix(close + 1);
    std::vector<std::string> longer;
    longer.reserve(entry.size() * numbers.size());
    for (const auto& name : entry) {
      for (const auto& number : numbers) {
        longer.push_back(name + number);
      }
    }
    entry = std::move(longer);
  }
  if (entry.front().empty() || names.size() + entry.size() > kMaxNames) {
    return false;
  }
  names.insert(names.end(), entry.begin(), entry.end());
  return true;
}

}  // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view text) {
  std::vector<std::string> names;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (!expand_entry(rest, names)) {
      return fail(ErrorCode::kParse, "not a node list: '{}'", printable(text, 80));
    }
    if (!rest.empty()) {
      rest.remove_prefix(1);
      if (rest.empty()) {
        return fail(ErrorCode::kParse, "node list ends with a comma: '{}'", printable(text, 80));
      }
    }
  }
  return names;
}

}  // namespace ceems
