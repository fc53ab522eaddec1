#include "host/cpu_list.h"

#include "base/strings.h"

namespace ceems::host {

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  constexpr int kMaxCpus = 65536;
  std::vector<int> cpus;
  text = trim(text);
  while (!text.empty()) {
    std::string_view range = take_until(text, ',');
    const auto first = parse_int<int>(take_until(range, '-'));
    const auto last = range.empty() ? first : parse_int<int>(range);
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) {
      return std::nullopt;
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(cpu);
    }
    if (cpus.size() > kMaxCpus) {
      return std::nullopt;
    }
  }
  return cpus;
}

}  // namespace ceems::host
