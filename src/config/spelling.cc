#include "config/spelling.h"

#include <algorithm>
#include <vector>

namespace ceems::config {
namespace {

/// Levenshtein distance, one row at a time.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t swap = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({above + 1, row[j - 1] + 1, swap});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t least = std::clamp<std::size_t>(word.size() / 3, 1, 21) + 1;  // exclusive limit
  if (word.size() > 128) {
    return best;
  }
  for (const std::string_view candidate : known) {
    const std::size_t count = edits(word, candidate);
    if (count < least) {
      least = count;
      best = candidate;
    }
  }
  return best;
}

}  // namespace ceems::config
