// The report as text for terminals.
#include <algorithm>
#include <cmath>
#include <utility>

#include "report/plain_text.h"
#include "report/report.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

constexpr std::size_t kMinWidth = 60;
constexpr std::size_t kMaxWidth = 240;
constexpr std::size_t kMargin = 2;

std::string spaces(std::size_t count) {
  return std::string(count, ' ');
}

std::string right(std::string_view text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return spaces(width > columns ? width - columns : 0) + std::string(text);
}

/// At most this many columns, which must be some.
std::string shortened(const std::string& text, std::size_t width) {
  return columns_of(text) <= width ? text : wrap(text, width - 1).front() + "…";
}

/// Collects lines of at most `width` columns.
class Page {
 public:
  explicit Page(const View& view)
      : width_(std::clamp(view.width, kMinWidth, kMaxWidth)), ascii_(view.ascii) {}

  void line(std::string_view text = {}) {
    std::string out = ascii_ ? to_ascii(text) : std::string(text);
    out.erase(out.find_last_not_of(' ') + 1);
    text_ += out + '\n';
  }
  /// Breaks the text; all lines but the first begin below `hang` columns.
  void paragraph(std::string_view first, std::string_view text, std::size_t hang) {
    bool begun = false;
    for (const std::string& part : wrap(text, width_ - std::max(hang, columns_of(first)))) {
      line((std::exchange(begun, true) ? spaces(hang) : std::string(first)) + part);
    }
  }
  void heading(std::string_view title, std::string_view remark) {
    line();
    const bool fits = columns_of(title) + 2 + columns_of(remark) <= width_;
    if (remark.empty() || fits) {
      line(remark.empty()
               ? std::string(title)
               : fmt::format("{}{}", padded(title, width_ - columns_of(remark)), remark));
    } else {
      line(title);
      paragraph(spaces(kMargin), remark, kMargin);
    }
  }
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::size_t width_;
  bool ascii_;
  std::string text_;
};

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::string drawn(double share, std::size_t width) {
  const double full = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  const auto blocks = static_cast<std::size_t>(std::llround(full));
  std::string bar;
  for (std::size_t i = 0; i < width; ++i) {
    bar += i < blocks ? "█" : " ";
  }
  return "[" + bar + "]";
}

void add_bars(Page& page, const Sheet& sheet) {
  if (sheet.bars.empty() && sheet.nodes.empty()) {
    return;
  }
  page.heading(sheet.used_title, sheet.usual_title);
  std::size_t label = 0;
  std::size_t usual = 0;
  for (const Bar& bar : sheet.bars) {
    label = std::max(label, columns_of(bar.label));
    usual = std::max(usual, columns_of(bar.usual));
  }
  constexpr std::size_t kValue = 6;
  const std::size_t rest = label + kMargin + kValue + 4 + (usual > 0 ? usual + 2 : 0);
  const std::size_t bar_width =
      std::clamp<std::size_t>(page.width() > rest ? page.width() - rest : 0, 10, 40);
  for (const Bar& bar : sheet.bars) {
    std::string line = spaces(kMargin) + padded(bar.label, label) + ' ';
    if (!bar.share) {
      page.line(line + bar.value);
      continue;
    }
    line += drawn(*bar.share, bar_width) + right(bar.value, kValue);
    if (usual > 0) {
      line += "  " + padded(bar.usual, usual);
    }
    const std::string whole = bar.remark.empty() ? line : line + "  " + bar.remark;
    if (columns_of(whole) <= page.width()) {
      page.line(whole);
    } else {
      page.line(line);
      page.paragraph(spaces(kMargin + label + 1), bar.remark, kMargin + label + 1);
    }
  }
}

/// Its last column may be empty, and is broken where it is long.
void add_table(Page& page,
               const std::vector<std::string>& columns,
               const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) {
    return;
  }
  std::vector<std::size_t> widths(columns.size(), 0);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    widths[i] = columns_of(columns[i]);
    for (const auto& row : rows) {
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  // A long name of a node is shortened, because a row in two lines would be hard to read.
  constexpr std::size_t kShortest = 8;
  std::size_t others = kMargin + 2;
  for (std::size_t i = 1; i + 1 < widths.size(); ++i) {
    others += widths[i] + 2;
  }
  const std::size_t room = page.width() > others ? page.width() - others : 0;
  widths[0] = std::min(widths[0], std::max(room, kShortest));
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line = spaces(kMargin);
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      line += padded(i == 0 ? shortened(row[i], widths[i]) : row[i], widths[i]) + "  ";
    }
    const std::size_t hang = kMargin + 2;
    if (row.back().empty() || columns_of(line) + columns_of(row.back()) <= page.width()) {
      page.line(line + row.back());
    } else {
      page.line(line);
      page.paragraph(spaces(hang), row.back(), hang);
    }
  };
  const bool noted = std::ranges::any_of(rows, [](const auto& row) { return !row.back().empty(); });
  std::vector<std::string> header = columns;
  if (!noted) {
    header.back().clear();
  }
  add(header);
  for (const auto& row : rows) {
    add(row);
  }
}

void add_lines(Page& page,
               std::string_view title,
               std::string_view remark,
               const std::vector<Line>& lines) {
  if (lines.empty()) {
    return;
  }
  page.heading(title, remark);
  std::size_t label = 0;
  for (const Line& line : lines) {
    label = std::max(label, columns_of(line.label));
  }
  const std::size_t hang = kMargin + label + 2;
  for (const Line& line : lines) {
    page.paragraph(spaces(kMargin) + padded(line.label, label + 2), line.value, hang);
  }
}

void add_phases(Page& page, const Sheet& sheet) {
  if (!sheet.phases.empty()) {
    page.heading(sheet.phase_title, "");
    add_table(page, sheet.phase_columns, sheet.phases);
  }
  add_lines(page, sheet.result_title, "", sheet.results);
}

void add_advice(Page& page, const Sheet& sheet) {
  if (!sheet.partly.empty()) {
    page.line();
    page.paragraph("", sheet.partly, 0);
  }
  if (sheet.suggestions.empty() && sheet.nothing.empty()) {
    return;
  }
  page.heading(sheet.advice_title, "");
  if (!sheet.nothing.empty()) {
    page.line(spaces(kMargin) + sheet.nothing);
  }
  constexpr std::size_t kHang = 5;
  for (std::size_t i = 0; i < sheet.suggestions.size(); ++i) {
    const Suggestion& suggestion = sheet.suggestions[i];
    std::string text = suggestion.text;
    std::string remark = suggestion.confidence;
    if (!suggestion.saves.empty()) {
      remark += (remark.empty() ? "" : "; ") + suggestion.saves;
    }
    if (!remark.empty()) {
      text += " (" + remark + ")";
    }
    page.paragraph(fmt::format("  {}. ", i + 1), text, kHang);
    for (const advice::Line& one : suggestion.lines) {
      const std::string line = spaces(kHang + 2) + one.type;
      const std::string was = one.was.empty() ? "" : "  (" + one.was + ")";
      const std::string both = padded(line, kHang + 2 + 28) + was;
      if (columns_of(both) <= page.width()) {
        page.line(both);
      } else {  // a line to type is never broken
        page.line(line);
        page.line(spaces(kHang + 2) + was);
      }
    }
  }
  if (!sheet.more.empty()) {
    page.line(spaces(kMargin) + sheet.more);
  }
}

void make_ascii(std::string& text) {
  text = to_ascii(text);
}
void make_ascii(Bar& bar) {
  for (std::string* text : {&bar.label, &bar.value, &bar.usual, &bar.remark}) {
    make_ascii(*text);
  }
}
void make_ascii(Line& line) {
  make_ascii(line.label);
  make_ascii(line.value);
}
void make_ascii(Suggestion& suggestion) {
  for (std::string* text : {&suggestion.text, &suggestion.confidence, &suggestion.saves}) {
    make_ascii(*text);
  }
  for (advice::Line& line : suggestion.lines) {
    make_ascii(line.type);
    make_ascii(line.was);
  }
}
void make_ascii(Sheet& sheet) {
  for (std::string* text :
       {&sheet.title, &sheet.partly, &sheet.used_title, &sheet.usual_title, &sheet.phase_title,
        &sheet.result_title, &sheet.cost_title, &sheet.cost_remark, &sheet.advice_title,
        &sheet.nothing, &sheet.more, &sheet.help}) {
    make_ascii(*text);
  }
  for (auto* list : {&sheet.about, &sheet.when, &sheet.node_columns, &sheet.phase_columns}) {
    for (std::string& text : *list) {
      make_ascii(text);
    }
  }
  for (auto* rows : {&sheet.nodes, &sheet.phases}) {
    for (auto& row : *rows) {
      for (std::string& text : row) {
        make_ascii(text);
      }
    }
  }
  const auto each = [](auto& list) {
    for (auto& item : list) {
      make_ascii(item);
    }
  };
  each(sheet.bars);
  each(sheet.results);
  each(sheet.costs);
  each(sheet.suggestions);
}

}  // namespace

std::string text_form(Sheet sheet, const View& view) {
  if (view.ascii) {  // before columns are counted, because "ö" becomes two letters
    make_ascii(sheet);
  }
  Page page(view);
  std::vector<std::string> about{sheet.title};
  about.insert(about.end(), sheet.about.begin(), sheet.about.end());
  page.paragraph("", joined(about), 2);
  if (!sheet.when.empty()) {
    page.paragraph("", joined(sheet.when), 2);
  }
  add_bars(page, sheet);
  add_table(page, sheet.node_columns, sheet.nodes);
  add_phases(page, sheet);
  add_lines(page, sheet.cost_title, sheet.cost_remark, sheet.costs);
  add_advice(page, sheet);
  if (!sheet.help.empty()) {
    page.line();
    page.paragraph("", sheet.help, 2);
  }
  return page.take();
}

std::string to_text(const Report& report, const View& view) {
  return text_form(sheet_of(report, view), view);
}

}  // namespace ceems::report
