#include "cacct/output/box.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/utf8.h"

namespace ceems::cacct {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};
/// Blocks of characters with East Asian width W or F (Unicode Standard Annex #11), rounded to
/// blocks.
constexpr std::array<Range, 9> kWide{{{0x1100, 0x115F},
                                      {0x2E80, 0x303E},
                                      {0x3041, 0xA4CF},
                                      {0xAC00, 0xD7A3},
                                      {0xF900, 0xFAFF},
                                      {0xFE30, 0xFE6F},
                                      {0xFF00, 0xFF60},
                                      {0x1F300, 0x1FAFF},
                                      {0x20000, 0x3FFFD}}};
/// Blocks of combining and invisible characters.
constexpr std::array<Range, 6> kNarrow{{{0x0300, 0x036F},
                                        {0x200B, 0x200D},
                                        {0x1AB0, 0x1AFF},
                                        {0x20D0, 0x20FF},
                                        {0xFE00, 0xFE0F},
                                        {0xFE20, 0xFE2F}}};

bool is_in(char32_t c, std::span<const Range> ranges) {
  return std::ranges::any_of(ranges, [c](Range r) { return c >= r.first && c <= r.last; });
}

/// The character at the front of `text`: its bytes and columns.
std::pair<std::size_t, std::size_t> next_character(std::string_view text) {
  const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
  if (length == 1) {
    return {1, 1};
  }
  const char32_t c = code_point(text.substr(0, length));
  return {length, is_in(c, kNarrow) ? 0 : (is_in(c, kWide) ? 2 : 1)};
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

std::string blanks(std::size_t count) {
  std::string text;
  return text.append(count, ' ');
}

/// A cell, which may span several columns.
struct Cell {
  std::vector<std::string> pieces;  ///< one below the other
  std::size_t first = 0;            ///< column
  std::size_t count = 1;            ///< columns
  bool centred = false;
  bool right = false;
};

struct Line {
  std::vector<Cell> cells;
  bool bold = false;
};

/// Draws the lines of a table that was laid out.
class Drawing {
 public:
  explicit Drawing(std::vector<std::size_t> widths) : widths_(std::move(widths)) {}

  /// The horizontal line between two lines, either of which may be missing.
  void rule(const Line* above, const Line* below) {
    constexpr std::array<std::string_view, 4> kJunctions{"─", "┴", "┬", "┼"};  // above | below << 1
    const auto up = borders(above);
    const auto down = borders(below);
    out_ += above == nullptr ? "┌" : (below == nullptr ? "└" : "├");
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      for (std::size_t k = 0; k < widths_[i] + 2; ++k) {
        out_ += "─";
      }
      if (i + 1 < widths_.size()) {
        out_ += kJunctions.at((up[i] ? 1U : 0U) | (down[i] ? 2U : 0U));
      }
    }
    out_ += above == nullptr ? "┐" : (below == nullptr ? "┘" : "┤");
    out_ += '\n';
  }

  void draw(const Line& line) {
    std::size_t height = 1;
    for (const Cell& cell : line.cells) {
      height = std::max(height, cell.pieces.size());
    }
    for (std::size_t row = 0; row < height; ++row) {
      for (const Cell& cell : line.cells) {
        const std::string_view text =
            row < cell.pieces.size() ? std::string_view(cell.pieces[row]) : std::string_view();
        out_ += "│ ";
        draw(cell, text, line.bold);
        out_ += ' ';
      }
      out_ += "│\n";
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void draw(const Cell& cell, std::string_view text, bool bold) {
    std::size_t width = 3 * (cell.count - 1);
    for (std::size_t i = 0; i < cell.count; ++i) {
      width += widths_[cell.first + i];
    }
    const std::size_t free = width - std::min(width, display_width(text));
    std::size_t left = 0;
    if (cell.centred) {
      left = free - free / 2;
    } else if (cell.right) {
      left = free;
    }
    out_ += blanks(left);
    if (bold && !text.empty()) {
      out_.append("\x1b[1m").append(text).append("\x1b[0m");
    } else {
      out_ += text;
    }
    out_ += blanks(free - left);
  }

  /// Whether there is a border behind each column.
  [[nodiscard]] std::vector<bool> borders(const Line* line) const {
    std::vector<bool> after(widths_.size(), false);
    if (line != nullptr) {
      for (const Cell& cell : line->cells) {
        after[cell.first + cell.count - 1] = true;
      }
    }
    return after;
  }

  std::vector<std::size_t> widths_;
  std::string out_;
};

/// One line of a table. `texts` has a text for each column.
Line make_line(const Table& table, const Table::Row& texts, bool merge) {
  Line line;
  for (std::size_t i = 0; i < texts.size();) {
    const Field& field = table.columns[i].field;
    Cell cell{.pieces = cut(texts[i], field.max), .first = i};
    cell.right = field.right;
    while (merge && i + cell.count < texts.size() && texts[i + cell.count] == texts[i]) {
      ++cell.count;
    }
    cell.centred = cell.count > 1;
    i += cell.count;
    line.cells.push_back(std::move(cell));
  }
  return line;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto [bytes, columns] = next_character(text);
    width += columns;
    text.remove_prefix(bytes);
  }
  return width;
}

std::vector<std::string> cut(std::string_view text, std::size_t width) {
  std::vector<std::string> pieces(1);
  std::size_t used = 0;
  while (!text.empty()) {
    const auto [bytes, columns] = next_character(text);
    if (used + columns > width && !pieces.back().empty()) {
      pieces.emplace_back();
      used = 0;
    }
    pieces.back() += text.substr(0, bytes);
    used += columns;
    text.remove_prefix(bytes);
  }
  return pieces;
}

std::string draw_box(const Table& full, bool bold) {
  const Table table = full.without_empty_columns();
  Table::Row titles;
  Table::Row subs;
  Table::Row summary(table.columns.size());
  for (const Column& column : table.columns) {
    titles.push_back(upper(column.title));
    subs.push_back(upper(column.sub));
  }
  if (!summary.empty()) {
    summary.front() = "Summary";
  }

  std::vector<Line> lines;
  lines.push_back(make_line(table, titles, true));
  lines.push_back(make_line(table, subs, false));
  for (const Table::Row& row : table.units) {
    lines.push_back(make_line(table, row, false));
  }
  const std::size_t summary_at = lines.size();
  lines.push_back(make_line(table, summary, true));
  for (const Table::Row& row : table.footers) {
    lines.push_back(make_line(table, row, false));
  }

  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) {
    widths.push_back(column.field.min);
  }
  for (Line& line : lines) {
    for (const Cell& cell : line.cells) {
      for (const std::string& piece : cell.pieces) {
        if (cell.count == 1) {
          widths[cell.first] = std::max(widths[cell.first], display_width(piece));
        }
      }
    }
  }
  for (const std::size_t marked : {std::size_t{0}, std::size_t{1}, summary_at}) {
    lines[marked].bold = bold;
  }

  Drawing drawing(std::move(widths));
  const Line* above = nullptr;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool between_units = i > 2 && i < summary_at;
    if (!between_units) {
      drawing.rule(above, &lines[i]);
    }
    drawing.draw(lines[i]);
    above = &lines[i];
  }
  drawing.rule(above, nullptr);
  return drawing.take();
}

}  // namespace ceems::cacct
