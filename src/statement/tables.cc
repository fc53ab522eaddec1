// CSV and XLSX: the lines, then the sources and the tables of the appendix.
#include <utility>
#include <vector>

#include "base/text/cells.h"
#include "statement/layout.h"

namespace ceems::statement {

std::string to_csv(const Document& document) {
  std::string text;
  const auto row = [&text](const auto&... cells) {
    bool first = true;
    ((text += (std::exchange(first, false) ? "" : ",") + csv_cell(cells)), ...);
    text += "\r\n";
  };
  for (const auto& [name, value] : head_of(document)) {
    row(name, value);
  }
  const auto append = [&](const report::Table& table) {
    text += "\r\n";
    row("table", table.name);
    text += report::to_csv(table);
  };
  append(table_of_lines(document));
  append(table_of_sources(document));
  for (const report::Table& table : document.appendix) {
    append(table);
  }
  return text;
}

Result<std::string> to_xlsx(const Document& document) {
  std::vector<report::Table> tables{table_of_lines(document), table_of_sources(document)};
  tables.insert(tables.end(), document.appendix.begin(), document.appendix.end());
  return report::to_xlsx(tables, head_of(document));
}

}  // namespace ceems::statement
