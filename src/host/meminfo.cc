#include "host/meminfo.h"

#include <limits>

#include "base/strings.h"

namespace ceems::host {
namespace {

constexpr std::uint64_t kKibibyte = 1024;

}  // namespace

Result<> parse_meminfo(std::string_view text, std::vector<MeminfoLine>& lines) {
  lines.clear();
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = take_until(text, '\n');
    std::string_view rest = line;
    std::string_view key = take_word(rest);
    if (key.empty()) {
      continue;
    }
    const auto value = parse_int(take_word(rest));
    const bool is_bytes = !take_word(rest).empty();
    const bool fits =
        value && (!is_bytes || *value <= std::numeric_limits<std::uint64_t>::max() / kKibibyte);
    if (!key.ends_with(':') || !fits || !take_word(rest).empty()) {
      return fail(ErrorCode::kParse, "line {}: expected 'key: number [kB]', got '{}'", number,
                  printable(line));
    }
    key.remove_suffix(1);
    lines.push_back({key, is_bytes ? *value * kKibibyte : *value, is_bytes});
  }
  return {};
}

}  // namespace ceems::host
