#include "base/json.h"

#include <variant>

#include "statement/layout.h"

namespace ceems::statement {
namespace {

void json_cell(JsonWriter& json, const report::Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) {
    json.value(nullptr);
  } else if (const auto* number = std::get_if<double>(&cell)) {
    json.value(*number);
  } else {
    json.value(cell_text(cell));
  }
}

void json_rows(JsonWriter& json, const report::Table& table) {
  json.begin_array();
  for (const auto& row : table.rows) {
    json.begin_object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      json.key(table.columns[i]);
      json_cell(json, row[i]);
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string to_json(const Document& document) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("kind", document.kind).member("title", document.title);
  json.member("site", document.site).member("period", document.period);
  json.member("from", document.from).member("to", document.to);
  json.member("written", document.written).member("by", document.by);
  json.key("notes").begin_array();
  for (const std::string& note : document.notes) {
    json.value(note);
  }
  json.end_array();
  json.key("lines");
  json_rows(json, table_of_lines(document));
  json.key("sources");
  json_rows(json, table_of_sources(document));
  json.key("appendix").begin_object();
  for (const report::Table& table : document.appendix) {
    json.key(table.name);
    json_rows(json, table);
  }
  json.end_object().end_object();
  return text + "\n";
}

}  // namespace ceems::statement
