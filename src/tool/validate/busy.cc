#include "tool/validate/busy.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::tool::validate {
namespace {

constexpr std::size_t kMaxShown = 3;
constexpr std::size_t kMaxName = 40;
constexpr double kMinPercent = 1;
constexpr int kWordsBeforeTimes = 11;  // from the state, field 3, to utime, field 14

/// utime and stime of the text after the name.
std::optional<std::uint64_t> ticks_of(std::string_view rest) {
  for (int i = 0; i < kWordsBeforeTimes; ++i) {
    take_word(rest);
  }
  const auto user = parse_int(take_word(rest));
  const auto system = parse_int(take_word(rest));
  return user && system ? std::optional(*user + *system) : std::nullopt;
}

}  // namespace

std::map<int, BusyProcesses::Use> BusyProcesses::read() const {
  std::map<int, Use> found;
  const auto names = host::list_directory(proc_);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const auto pid = parse_int<int>(name);
    const auto text = pid ? host::read_file(proc_ + "/" + name + "/stat") : fail({});
    if (!text) {
      continue;  // not a process, or it has ended
    }
    const std::size_t begin = text->find('(');
    const std::size_t end = text->rfind(')');  // the name may contain brackets
    if (begin == std::string::npos || end == std::string::npos || end < begin) {
      continue;
    }
    if (const auto ticks = ticks_of(std::string_view(*text).substr(end + 1))) {
      found[*pid] = {.name = text->substr(begin + 1, end - begin - 1), .ticks = *ticks};
    }
  }
  return found;
}

std::string BusyProcesses::since_last(double seconds) {
  std::map<int, Use> now = read();
  std::vector<std::pair<double, std::string>> busy;
  for (const auto& [pid, use] : now) {
    const auto before = last_.find(pid);
    const std::uint64_t ticks =
        before == last_.end() || before->second.ticks > use.ticks ? 0 : before->second.ticks;
    const double percent =
        100 * static_cast<double>(use.ticks - ticks) / ticks_per_second_ / std::max(1e-3, seconds);
    if (percent >= kMinPercent) {
      busy.emplace_back(percent, fmt::format("{:.0f} % of a CPU by {} (process {})", percent,
                                             printable(use.name, kMaxName), pid));
    }
  }
  last_ = std::move(now);
  std::ranges::sort(busy, std::greater());
  busy.resize(std::min(busy.size(), kMaxShown));
  std::vector<std::string> shown;
  for (auto& [percent, text] : busy) {
    shown.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace ceems::tool::validate
