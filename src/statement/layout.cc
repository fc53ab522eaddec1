#include "statement/layout.h"

#include <optional>
#include <variant>

#include <fmt/format.h>

namespace ceems::statement {

report::Table table_of_lines(const Document& document) {
  report::Table table{
      .name = "Lines",
      .columns = {"section", "id", "label", "value", "unit", "how", "coverage", "note", "factor",
                  "factor_unit", "factor_source", "factor_date", "formula"}};
  for (const Line& line : document.lines) {
    table.rows.push_back({line.section, line.id, line.label, report::cell_of(line.value), line.unit,
                          std::string(name_of(line.how)), report::cell_of(line.coverage), line.note,
                          report::cell_of(line.factor.value), line.factor.unit, line.factor.source,
                          line.factor.date, line.formula});
  }
  return table;
}

report::Table table_of_sources(const Document& document) {
  report::Table table{.name = "Sources", .columns = {"what", "detail", "sha256"}};
  for (const Source& source : document.sources) {
    table.rows.push_back({source.what, source.detail, source.sha256});
  }
  return table;
}

report::Notes head_of(const Document& document) {
  report::Notes head{{"Report", document.title},    {"Kind", document.kind},
                     {"Site", document.site},       {"Period", document.period},
                     {"From", document.from},       {"To", document.to},
                     {"Written", document.written}, {"By", document.by}};
  for (const std::string& note : document.notes) {
    head.emplace_back("Note", note);
  }
  return head;
}

std::string cell_text(const report::Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return *text;
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return number_text(*number);
  }
  if (const auto* date = std::get_if<report::Date>(&cell)) {
    return fmt::format("{:04}-{:02}-{:02}", date->year, date->month, date->day);
  }
  return {};
}

}  // namespace ceems::statement
