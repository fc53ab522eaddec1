#include "exporter/collector.h"

#include <algorithm>

namespace ceems::exporter {

std::chrono::milliseconds start_patience(const CollectorContext& context,
                                         std::chrono::milliseconds most) {
  constexpr std::chrono::milliseconds kAlways{200};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      context.start_until - std::chrono::steady_clock::now());
  return std::min(most, std::max(left, kAlways));
}

}  // namespace ceems::exporter
