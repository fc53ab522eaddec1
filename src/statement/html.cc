#include "base/text/html.h"

#include <variant>

#include <fmt/format.h>

#include "statement/layout.h"

namespace ceems::statement {
namespace {

constexpr std::string_view kStyle =
    "body{font:11pt/1.4 sans-serif;margin:2em auto;max-width:70em;padding:0 1em}"
    "table{border-collapse:collapse;width:100%;font-size:9pt;margin:1em 0}"
    "caption{text-align:left;font-weight:bold;padding:.3em 0}"
    "th,td{border-bottom:1px solid #999;padding:.2em .4em;text-align:left;vertical-align:top;"
    "overflow-wrap:anywhere}td.n{text-align:right;white-space:nowrap}"
    "dl{display:grid;grid-template-columns:8em 1fr}dd{margin:0}"
    "@media print{body{margin:0;max-width:none}tr{break-inside:avoid}thead{display:table-header-"
    "group}@page{size:A4 landscape;margin:15mm}}";

std::string escaped(std::string_view text) {
  return escape_html(text);
}

void html_head(std::string& text, std::string_view caption, const std::vector<std::string>& names) {
  text += fmt::format("<table>\n<caption>{}</caption>\n<thead><tr>", escaped(caption));
  for (const std::string& name : names) {
    text += fmt::format("<th scope=\"col\">{}</th>", escaped(name));
  }
  text += "</tr></thead>\n<tbody>\n";
}

void html_row(std::string& text, const std::vector<report::Cell>& cells) {
  text += "<tr>";
  bool first = true;
  for (const report::Cell& cell : cells) {
    const std::string shown = escaped(cell_text(cell));
    if (first) {
      text += fmt::format("<th scope=\"row\">{}</th>", shown);
    } else {
      text += fmt::format("<td{}>{}</td>",
                          std::holds_alternative<double>(cell) ? " class=\"n\"" : "", shown);
    }
    first = false;
  }
  text += "</tr>\n";
}

void html_table(std::string& text, const report::Table& table) {
  html_head(text, table.name, table.columns);
  for (const auto& row : table.rows) {
    html_row(text, row);
  }
  text += "</tbody></table>\n";
}

}  // namespace

std::string to_html(const Document& document) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width\">\n<title>{} {}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<main>\n<h1>{}</h1>\n<dl>\n",
      escaped(document.title), escaped(document.period), kStyle, escaped(document.title));
  for (const auto& [name, value] : head_of(document)) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
  }
  text += "</dl>\n";
  std::string section;
  for (const Line& line : document.lines) {
    if (line.section != section) {
      text += section.empty() ? "" : "</tbody></table>\n";
      section = line.section;
      text += fmt::format("<h2>{}</h2>\n", escaped(section));
      html_head(text, section, {"line", "value", "unit", "how", "coverage", "note"});
    }
    html_row(text, {line.label, report::cell_of(line.value), line.unit,
                    std::string(name_of(line.how)), report::cell_of(line.coverage), line.note});
  }
  text += section.empty() ? "" : "</tbody></table>\n";
  text += "<h2>Appendix for reviewers</h2>\n";
  html_table(text, table_of_lines(document));
  html_table(text, table_of_sources(document));
  for (const report::Table& table : document.appendix) {
    html_table(text, table);
  }
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace ceems::statement
