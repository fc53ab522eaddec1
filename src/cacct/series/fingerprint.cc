#include "cacct/series/fingerprint.h"

#include <string_view>

#include <fmt/format.h>

namespace ceems::cacct {

std::string fingerprint(const SeriesLabels& labels) {
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    }
    hash = (hash ^ 0xFFU) * 1099511628211U;
  };
  for (const auto& [name, value] : labels) {
    add(name);
    add(value);
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace ceems::cacct
