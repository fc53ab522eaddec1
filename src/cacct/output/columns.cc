#include "cacct/output/columns.h"

#include <algorithm>

#include "cacct/output/box.h"

namespace ceems::cacct {
namespace {

constexpr std::size_t kGap = 2;

}  // namespace

std::string shortened(const std::string& text, std::size_t width, std::string_view mark) {
  if (display_width(text) <= width) {
    return text;
  }
  const std::size_t room = width - std::min(width, display_width(mark));
  return cut(text, std::max<std::size_t>(room, 1)).front().append(mark);
}

std::size_t Columns::width_of(std::size_t column) const {
  std::size_t width = display_width(columns_[column].title);
  for (const auto& row : rows_) {
    width = std::max(width, display_width(row[column]));
  }
  return width;
}

void Columns::erase(std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  columns_.erase(columns_.begin() + at);
  for (auto& row : rows_) {
    row.erase(row.begin() + at);
  }
}

void Columns::drop_empty() {
  for (std::size_t i = columns_.size(); i-- > 0;) {
    if (columns_[i].leave_out > 0 &&
        std::ranges::all_of(rows_, [i](const auto& row) { return row[i].empty(); })) {
      erase(i);
    }
  }
}

bool Columns::fit(std::size_t width, std::string_view mark) {
  bool whole = true;
  while (true) {
    std::size_t needed = 0;
    std::size_t spare = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t natural = width_of(i);
      const std::size_t least = columns_[i].least;
      spare += least > 0 && natural > least ? natural - least : 0;
      needed += natural + (i > 0 ? kGap : 0);
    }
    if (needed <= width) {
      return whole;
    }
    whole = false;
    auto next = columns_.end();
    for (auto i = columns_.begin(); i != columns_.end(); ++i) {
      if (i->leave_out > 0 && (next == columns_.end() || i->leave_out < next->leave_out)) {
        next = i;
      }
    }
    if (needed - spare > width && next != columns_.end()) {
      erase(static_cast<std::size_t>(next - columns_.begin()));
      continue;
    }
    std::size_t excess = needed - width;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t natural = width_of(i);
      const std::size_t least = columns_[i].least;
      if (least == 0 || natural <= least) {
        continue;
      }
      const std::size_t given = std::min(excess, natural - least);
      excess -= given;
      for (auto& row : rows_) {
        row[i] = shortened(row[i], natural - given, mark);
      }
    }
    return false;
  }
}

std::vector<std::string> Columns::lines() const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width_of(i));
    titles.push_back(columns_[i].title);
  }
  std::vector<std::string> out;
  const auto append = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t pad = widths[i] - display_width(row[i]);
      const bool right = columns_[i].right;
      line.append((i > 0 ? kGap : 0) + (right ? pad : 0), ' ').append(row[i]);
      line.append(right ? 0 : pad, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  };
  append(titles);
  std::ranges::for_each(rows_, append);
  return out;
}

}  // namespace ceems::cacct
