#include <algorithm>

#include <fmt/format.h>

#include "base/text/cells.h"
#include "statement/layout.h"

namespace ceems::statement {
namespace {

/// In one line: queries of the configuration may have several.
std::string markdown_cell(std::string_view text) {
  std::string line = escape_markdown(text);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\r', ' ');
  return line;
}

void markdown_row(std::string& text, const std::vector<std::string>& cells) {
  text += "|";
  for (const std::string& cell : cells) {
    text += fmt::format(" {} |", markdown_cell(cell));
  }
  text += "\n";
}

void markdown_head(std::string& text, const std::vector<std::string>& names) {
  markdown_row(text, names);
  text += "|";
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += "---|";
  }
  text += "\n";
}

void markdown_table(std::string& text, const report::Table& table) {
  text += fmt::format("\n### {}\n\n", escape_markdown(table.name));
  markdown_head(text, table.columns);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const report::Cell& cell : row) {
      cells.push_back(cell_text(cell));
    }
    markdown_row(text, cells);
  }
}

std::string value_text(const std::optional<double>& value) {
  return value ? number_text(*value) : std::string();
}

}  // namespace

std::string to_markdown(const Document& document) {
  std::string text = fmt::format("# {}\n\n", escape_markdown(document.title));
  for (const auto& [name, value] : head_of(document)) {
    text += fmt::format("- {}: {}\n", name, markdown_cell(value));
  }
  std::string section;
  for (const Line& line : document.lines) {
    if (line.section != section) {
      section = line.section;
      text += fmt::format("\n## {}\n\n", escape_markdown(section));
      markdown_head(text, {"", "value", "unit", "how", "coverage", "note"});
    }
    markdown_row(text, {line.label, value_text(line.value), line.unit,
                        std::string(name_of(line.how)), value_text(line.coverage), line.note});
  }
  text += "\n## Appendix for reviewers\n";
  markdown_table(text, table_of_lines(document));
  markdown_table(text, table_of_sources(document));
  for (const report::Table& table : document.appendix) {
    markdown_table(text, table);
  }
  return text;
}

}  // namespace ceems::statement
