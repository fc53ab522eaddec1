// The report as a page of its own.
#include "base/text/html.h"

#include <algorithm>
#include <cmath>

#include "crypto/base64.h"
#include "crypto/digest.h"
#include "report/page_style.h"
#include "report/report.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

std::string html_sentence(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : " · ") + escape_html(part);
  }
  return text;
}

/// Decorative: the number stands beside it.
std::string drawn(const std::optional<double>& share) {
  if (!share) {
    return {};
  }
  const double width = std::round(std::clamp(*share, 0.0, 1.0) * 198);
  return fmt::format(
      "<svg viewBox=\"0 0 200 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
      "<rect class=\"all\" x=\"1\" y=\"1\" width=\"198\" height=\"8\"/>"
      "<rect class=\"part\" x=\"1\" y=\"1\" width=\"{:.0f}\" height=\"8\"/></svg>",
      width);
}

std::string cells(std::string_view cell, const std::vector<std::string>& texts) {
  std::string row;
  for (const std::string& text : texts) {
    row += fmt::format("<{0}>{1}</{0}>", cell, escape_html(text));
  }
  return row;
}

std::string bars_html(const Sheet& sheet) {
  if (sheet.bars.empty() && sheet.nodes.empty()) {
    return {};
  }
  std::string html = fmt::format("<h2>{}</h2>\n", escape_html(sheet.used_title));
  if (sheet.bars.empty()) {
    return html;
  }
  html += "<table>\n";
  if (!sheet.usual_title.empty()) {
    html += fmt::format(
        "<thead><tr><td></td><td></td><td></td><th scope=\"col\">{}</th><td></td></tr></thead>\n",
        escape_html(sheet.usual_title));
  }
  html += "<tbody>\n";
  for (const Bar& bar : sheet.bars) {
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td><td>{}</td></tr>\n",
        escape_html(bar.label), drawn(bar.share), escape_html(bar.value), escape_html(bar.usual),
        escape_html(bar.remark));
  }
  return html + "</tbody>\n</table>\n";
}

std::string table_html(const std::vector<std::string>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) {
    return {};
  }
  std::string html = "<div class=\"wide\" tabindex=\"0\">\n<table>\n<thead><tr>";
  for (const std::string& column : columns) {
    html += fmt::format("<th scope=\"col\">{}</th>", escape_html(column));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n", escape_html(row.front()),
                        cells("td", {row.begin() + 1, row.end()}));
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

std::string lines_html(const std::string& title,
                       const std::string& remark,
                       const std::vector<Line>& lines) {
  if (lines.empty()) {
    return {};
  }
  std::string html = fmt::format("<h2>{}</h2>\n", escape_html(title));
  if (!remark.empty()) {
    html += fmt::format("<p class=\"remark\">{}</p>\n", escape_html(remark));
  }
  html += "<table>\n<tbody>\n";
  for (const Line& line : lines) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape_html(line.label),
                        escape_html(line.value));
  }
  return html + "</tbody>\n</table>\n";
}

std::string phases_html(const Sheet& sheet) {
  std::string html;
  if (!sheet.phases.empty()) {
    html = fmt::format("<h2>{}</h2>\n", escape_html(sheet.phase_title));
    html += table_html(sheet.phase_columns, sheet.phases);
  }
  return html + lines_html(sheet.result_title, "", sheet.results);
}

std::string advice_html(const Sheet& sheet) {
  std::string html;
  if (!sheet.partly.empty()) {
    html += fmt::format("<p>{}</p>\n", escape_html(sheet.partly));
  }
  if (sheet.suggestions.empty() && sheet.nothing.empty()) {
    return html;
  }
  html += fmt::format("<h2>{}</h2>\n", escape_html(sheet.advice_title));
  if (!sheet.nothing.empty()) {
    html += fmt::format("<p>{}</p>\n", escape_html(sheet.nothing));
  }
  if (!sheet.suggestions.empty()) {
    html += "<ol>\n";
  }
  for (const Suggestion& suggestion : sheet.suggestions) {
    html += fmt::format("<li>{}", escape_html(suggestion.text));
    for (const std::string* remark : {&suggestion.confidence, &suggestion.saves}) {
      if (!remark->empty()) {
        html += fmt::format(" <span class=\"remark\">({})</span>", escape_html(*remark));
      }
    }
    for (const advice::Line& line : suggestion.lines) {
      html += fmt::format("<pre><code>{}</code></pre>", escape_html(line.type));
      if (!line.was.empty()) {
        html += fmt::format("<p class=\"remark\">{}</p>", escape_html(line.was));
      }
    }
    html += "</li>\n";
  }
  if (!sheet.suggestions.empty()) {
    html += "</ol>\n";
  }
  if (!sheet.more.empty()) {
    html += fmt::format("<p>{}</p>\n", escape_html(sheet.more));
  }
  return html;
}

}  // namespace

std::string html_policy() {
  static const std::string kPolicy =
      fmt::format("default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
                  crypto::base64_encode(crypto::sha256(kReportCss)));
  return kPolicy;
}

std::string html_form(const Sheet& sheet, const View& view) {
  const std::string language = advice::catalogue(view.language).language;
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n",
      language, escape_html(html_policy()), escape_html(sheet.title), kReportCss);
  html +=
      fmt::format("<h1>{}</h1>\n<p>{}</p>\n", escape_html(sheet.title), html_sentence(sheet.about));
  if (!sheet.when.empty()) {
    html += fmt::format("<p>{}</p>\n", html_sentence(sheet.when));
  }
  html += bars_html(sheet) + table_html(sheet.node_columns, sheet.nodes) + phases_html(sheet) +
          lines_html(sheet.cost_title, sheet.cost_remark, sheet.costs) + advice_html(sheet);
  if (!sheet.help.empty()) {
    html += fmt::format("<p>{}</p>\n", escape_html(sheet.help));
  }
  return html + "</main>\n</body>\n</html>\n";
}

std::string to_html(const Report& report, const View& view) {
  return html_form(sheet_of(report, view), view);
}

}  // namespace ceems::report
