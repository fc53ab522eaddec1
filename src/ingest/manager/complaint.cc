#include "ingest/manager/complaint.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/strings.h"

namespace ceems::ingest {
namespace {

constexpr std::array<std::string_view, 3> kSigns{
    "error:", "fatal:", "traceback (most recent call last)"};
/// Levels before a text, as loggers write them: "WARNING: last error: none".
constexpr std::array<std::string_view, 5> kLevels{"warning", "warn", "info", "notice", "debug"};

bool has_any(std::string_view line, auto&& words) {
  return std::ranges::any_of(
      words, [line](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

bool is_lower_level(std::string_view line) {
  // The first text before a colon may be the name of the program.
  for (int part = 0; part < 2; ++part) {
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view word = trim(line.substr(0, colon));
    if (std::ranges::find(kLevels, word) != kLevels.end()) {
      return true;
    }
    line.remove_prefix(std::min(line.size(), colon + 1));
  }
  return false;
}

}  // namespace

bool complains(std::string_view text,
               std::initializer_list<std::string_view> signs,
               std::initializer_list<std::string_view> harmless) {
  while (!text.empty()) {
    const std::string line = to_lower(trim(take_until(text, '\n')));
    if ((has_any(line, kSigns) || has_any(line, signs)) && !has_any(line, harmless) &&
        !is_lower_level(line)) {
      return true;
    }
  }
  return false;
}

}  // namespace ceems::ingest
