// The report as Markdown, for tickets and wikis.
#include <algorithm>

#include "base/text/cells.h"
#include "report/plain_text.h"
#include "report/report.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

std::string row_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    line += fmt::format(" {} |", escape_markdown(cell));
  }
  return line + '\n';
}

std::string table_of(const std::vector<std::string>& header,
                     const std::vector<std::vector<std::string>>& rows) {
  std::string text = row_of(header) + "|";
  for (std::size_t i = 0; i < header.size(); ++i) {
    text += "---|";
  }
  text += '\n';
  for (const auto& row : rows) {
    text += row_of(row);
  }
  return text + '\n';
}

std::string markdown_sentence(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : " · ") + escape_markdown(part);
  }
  return text;
}

std::string lines_of(const std::string& title,
                     const std::string& remark,
                     const std::vector<Line>& lines) {
  if (lines.empty()) {
    return {};
  }
  std::string text = fmt::format("## {}\n\n", escape_markdown(title));
  if (!remark.empty()) {
    text += escape_markdown(remark) + "\n\n";
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(lines.size());
  for (const Line& line : lines) {
    rows.push_back({line.label, line.value});
  }
  return text + table_of({"", ""}, rows);
}

}  // namespace

std::string markdown_form(const Sheet& sheet) {
  std::string text =
      fmt::format("# {}\n\n{}\n\n", escape_markdown(sheet.title), markdown_sentence(sheet.about));
  if (!sheet.when.empty()) {
    text += markdown_sentence(sheet.when) + "\n\n";
  }
  if (!sheet.bars.empty() || !sheet.nodes.empty()) {
    text += fmt::format("## {}\n\n", escape_markdown(sheet.used_title));
  }
  std::vector<std::vector<std::string>> bars;
  bars.reserve(sheet.bars.size());
  for (const Bar& bar : sheet.bars) {
    bars.push_back({bar.label, bar.value, bar.usual, bar.remark});
  }
  if (!bars.empty()) {
    text += table_of({"", "", sheet.usual_title, ""}, bars);
  }
  if (!sheet.nodes.empty()) {
    text += table_of(sheet.node_columns, sheet.nodes);
  }
  if (!sheet.phases.empty()) {
    text += fmt::format("## {}\n\n", escape_markdown(sheet.phase_title));
    text += table_of(sheet.phase_columns, sheet.phases);
  }
  text += lines_of(sheet.result_title, "", sheet.results);
  text += lines_of(sheet.cost_title, sheet.cost_remark, sheet.costs);
  if (!sheet.partly.empty()) {
    text += escape_markdown(sheet.partly) + "\n\n";
  }
  if (!sheet.suggestions.empty() || !sheet.nothing.empty()) {
    text += fmt::format("## {}\n\n", escape_markdown(sheet.advice_title));
  }
  if (!sheet.nothing.empty()) {
    text += escape_markdown(sheet.nothing) + "\n\n";
  }
  for (std::size_t i = 0; i < sheet.suggestions.size(); ++i) {
    const Suggestion& suggestion = sheet.suggestions[i];
    std::string remark = suggestion.confidence;
    if (!suggestion.saves.empty()) {
      remark += (remark.empty() ? "" : "; ") + suggestion.saves;
    }
    text += fmt::format("{}. {}{}\n\n", i + 1, escape_markdown(suggestion.text),
                        remark.empty() ? "" : " *(" + escape_markdown(remark) + ")*");
    for (const advice::Line& line : suggestion.lines) {
      text += fmt::format("       {}{}\n\n", line.type, line.was.empty() ? "" : "   # " + line.was);
    }
  }
  if (!sheet.more.empty()) {
    text += escape_markdown(sheet.more) + "\n\n";
  }
  if (!sheet.help.empty()) {
    text += sheet.help + "\n";  // an address of the site, which may be a link
  }
  while (text.ends_with("\n\n")) {
    text.pop_back();
  }
  return text;
}

std::string to_markdown(const Report& report, const View& view) {
  return markdown_form(sheet_of(report, view));
}

}  // namespace ceems::report
