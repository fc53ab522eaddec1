#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::cacct {

/// A column of a list without borders.
struct ListColumn {
  std::string title;
  bool right = false;     ///< aligned to the right, as numbers are
  std::size_t least = 0;  ///< may be cut to this width, with "…" at the end; 0: never cut
  int leave_out = 0;      ///< what does not fit is left out in this order, 1 first; 0: never
};

/// Lines of cells with two blanks between columns. Cells hold no control characters.
class Columns {
 public:
  explicit Columns(std::vector<ListColumn> columns) : columns_(std::move(columns)) {}

  /// A cell for each column.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Leaves out columns in which every cell is empty, except those that are never left out.
  void drop_empty();
  /// Makes the lines at most `width` wide where columns may be cut and left out. Returns whether
  /// everything is still there, uncut.
  bool fit(std::size_t width, std::string_view mark);
  /// The titles, and a line for each row.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  [[nodiscard]] std::size_t width_of(std::size_t column) const;
  void erase(std::size_t column);

  std::vector<ListColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A text of at most `width` columns, whose end is `mark` if something had to be cut.
std::string shortened(const std::string& text, std::size_t width, std::string_view mark);

}  // namespace ceems::cacct
