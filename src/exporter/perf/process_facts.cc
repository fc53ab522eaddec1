#include "exporter/perf/process_facts.h"

#include "base/strings.h"

namespace ceems::exporter::perf {

std::optional<ProcessFacts> parse_process_facts(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  // Fields are numbered from 1; the one behind the name is the third, the state.
  constexpr int kParent = 4;
  constexpr int kSession = 6;
  constexpr int kStart = 22;
  ProcessFacts facts;
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3; field <= kStart; ++field) {
    const std::string_view word = take_word(rest);
    if (field == kParent || field == kSession) {
      const auto number = parse_int<int>(word);
      if (!number) {
        return std::nullopt;
      }
      (field == kParent ? facts.parent : facts.session) = *number;
    } else if (field == kStart) {
      const auto ticks = parse_int(word);
      if (!ticks) {
        return std::nullopt;
      }
      facts.start_ticks = *ticks;
    }
  }
  return facts;
}

std::optional<std::vector<int>> parse_cpu_numbers(std::string_view text) {
  constexpr int kMost = 65536;
  std::vector<int> cpus;
  text = trim(text);
  while (!text.empty()) {
    std::string_view range = take_until(text, ',');
    const auto first = parse_int<int>(take_until(range, '-'));
    const auto last = range.empty() ? first : parse_int<int>(range);
    if (!first || !last || *first < 0 || *last < *first || *last >= kMost) {
      return std::nullopt;
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(cpu);
    }
    if (cpus.size() > kMost) {
      return std::nullopt;
    }
  }
  return cpus;
}

}  // namespace ceems::exporter::perf
