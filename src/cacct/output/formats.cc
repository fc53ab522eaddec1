#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "base/text/cells.h"
#include "base/text/html.h"
#include "cacct/output/table.h"

namespace ceems::cacct {
namespace {

/// All rows of a table in order.
struct Rows {
  std::array<Table::Row, 2> header;
  std::vector<Table::Row> units;
  std::vector<Table::Row> footers;  ///< "Summary" first
  std::vector<bool> numbers;        ///< which columns hold numbers below their titles
};

Rows rows_of(const Table& full) {
  Table table = full.without_empty_columns();
  Rows rows;
  for (const Column& column : table.columns) {
    rows.header[0].push_back(column.title);
    rows.header[1].push_back(column.sub);
    rows.numbers.push_back(column.field.kind != FieldKind::kText);
  }
  rows.units = std::move(table.units);
  rows.footers.emplace_back(table.columns.size());
  if (!table.columns.empty()) {
    rows.footers[0][0] = "Summary";
  }
  rows.footers.insert(rows.footers.end(), table.footers.begin(), table.footers.end());
  return rows;
}

template <typename Visit>
void each_row(const Rows& rows, const Visit& visit) {
  std::ranges::for_each(rows.header, visit);
  std::ranges::for_each(rows.units, visit);
  std::ranges::for_each(rows.footers, visit);
}

/// `text` with a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    out.append(special.find(c) == std::string_view::npos ? "" : "\\") += c;
  }
  return out;
}

void append_html_part(std::string& out,
                      std::string_view part,
                      std::string_view cell,
                      std::span<const Table::Row> rows) {
  out += fmt::format("  <{}>\n", part);
  for (const Table::Row& row : rows) {
    out += "  <tr>\n";
    for (const std::string& text : row) {
      out += fmt::format("    <{0}>{1}</{0}>\n", cell, text.empty() ? "&nbsp;" : escape_html(text));
    }
    out += "  </tr>\n";
  }
  out += fmt::format("  </{}>\n", part);
}

std::string markdown_row(const Table::Row& row) {
  std::string line = "|";
  for (const std::string& text : row) {
    line += fmt::format(" {} |", escape_markdown(text));
  }
  return line + '\n';
}

/// Members of a unit or usage: the fields, and of a usage also those that say whose it is.
void write_record(JsonWriter& json, const Record& record, const std::vector<std::string>& tags) {
  json.begin_object();
  for (const std::string& tag : tags) {
    if (const auto* numbers = record.numbers(tag)) {
      json.key(tag).begin_object();
      for (const auto& [name, value] : *numbers) {
        json.member(name, value);
      }
      json.end_object();
    } else if (const auto text = record.text(tag); !text.empty()) {
      const bool number = tag == "num_units" || tag.ends_with("_ts");
      if (number && parse_int<std::int64_t>(text)) {
        json.raw_member(tag, text);
      } else {
        json.member(tag, text);
      }
    }
  }
  json.end_object();
}

}  // namespace

std::string to_csv(const Table& table) {
  const Rows rows = rows_of(table);
  std::string out;
  each_row(rows, [&](const Table::Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool number = rows.numbers[i] && &row != &rows.header[0] && &row != &rows.header[1];
      out.append(i == 0 ? "" : ",").append(number ? row[i] : csv_cell(row[i]));
    }
    out += '\n';
  });
  return out;
}

std::string to_html(const Table& table) {
  const Rows rows = rows_of(table);
  std::string out = "<table class=\"go-pretty-table\">\n";
  append_html_part(out, "thead", "th", rows.header);
  append_html_part(out, "tbody", "td", rows.units);
  append_html_part(out, "tfoot", "td", rows.footers);
  return out + "</table>\n";
}

std::string to_markdown(const Table& table) {
  const Rows rows = rows_of(table);
  std::string out;
  bool first = true;
  each_row(rows, [&](const Table::Row& row) {
    out += markdown_row(row);
    if (std::exchange(first, false)) {
      out += "|";
      for (std::size_t i = 0; i < row.size(); ++i) {
        out += " --- |";
      }
      out += '\n';
    }
  });
  return out;
}

std::string to_parsable(const Table& table, bool header) {
  std::string out;
  if (header) {
    for (const Column& column : table.columns) {
      out.append(&column == &table.columns.front() ? "" : "|").append(column.field.label);
      if (!column.sub.empty()) {
        out.append(".").append(escaped(column.sub, "|\\"));
      }
    }
    out += '\n';
  }
  for (const Table::Row& row : table.units) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out.append(i == 0 ? "" : "|").append(escaped(row[i], "|\\"));
    }
    out += '\n';
  }
  return out;
}

std::string to_json(const std::vector<Field>& fields,
                    const std::vector<Record>& units,
                    const std::vector<Record>& usage) {
  std::vector<std::string> unit_tags;
  std::vector<std::string> usage_tags{"project", "groupname", "username", "num_units",
                                      "total_time_seconds"};
  for (const Field& field : fields) {
    unit_tags.push_back(field.tag);
    if (field.kind != FieldKind::kText &&
        std::ranges::find(usage_tags, field.tag) == usage_tags.end()) {
      usage_tags.push_back(field.tag);
    }
  }
  for (const char* tag : {"started_at_ts", "ended_at_ts"}) {
    unit_tags.emplace_back(tag);
  }
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().key("units").begin_array();
  for (const Record& unit : units) {
    write_record(json, unit, unit_tags);
  }
  json.end_array().key("usage").begin_array();
  for (const Record& record : usage) {
    write_record(json, record, usage_tags);
  }
  json.end_array().end_object();
  return out + '\n';
}

std::string fields_help(std::span<const Field> fields, const std::vector<std::string>& series) {
  std::vector<const Field*> sorted;
  std::size_t left = std::string_view("FIELD").size();
  std::size_t right = std::string_view("DESCRIPTION").size();
  for (const Field& field : fields) {
    sorted.push_back(&field);
    left = std::max(left, field.label.size());
    right = std::max(right, field.help.size());
  }
  std::ranges::sort(sorted, {}, [](const Field* field) { return field->name; });
  const std::string rule = fmt::format("+{:-<{}}+{:-<{}}+\n", "", left + 2, "", right + 2);
  const auto row = [&](std::string_view name, std::string_view help) {
    return fmt::format("| {:{}} | {:{}} |\n", name, left, help, right);
  };
  std::string out = rule + row("FIELD", "DESCRIPTION") + rule;
  for (const Field* field : sorted) {
    out += row(field->label, field->help);
  }
  out += rule;
  if (!series.empty()) {
    out += "\nTime series for --ts and --ts.metrics:\n";
    for (const std::string& name : series) {
      out += fmt::format("  {}\n", name);
    }
  }
  return out;
}

}  // namespace ceems::cacct
