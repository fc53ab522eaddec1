#include "host/process_origin.h"

#include "base/strings.h"

namespace ceems::host {

std::optional<ProcessOrigin> parse_process_origin(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  // Fields are numbered from 1. The field after the name is field 3, the state.
  constexpr int kParent = 4;
  constexpr int kSession = 6;
  constexpr int kStart = 22;
  ProcessOrigin origin;
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3; field <= kStart; ++field) {
    const std::string_view word = take_word(rest);
    if (field == kParent || field == kSession) {
      const auto number = parse_int<int>(word);
      if (!number) {
        return std::nullopt;
      }
      (field == kParent ? origin.parent : origin.session) = *number;
    } else if (field == kStart) {
      const auto ticks = parse_int(word);
      if (!ticks) {
        return std::nullopt;
      }
      origin.start_ticks = *ticks;
    }
  }
  return origin;
}

}  // namespace ceems::host
