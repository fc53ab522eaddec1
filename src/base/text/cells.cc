#include "base/text/cells.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "base/utf8.h"

namespace ceems {
namespace {

/// Whether a cell that begins so is a formula; the last four are wide forms, as in Japanese.
bool begins_formula(std::string_view text) {
  constexpr std::array<std::string_view, 8> kSigns{"=",      "+",      "-",      "@",
                                                   "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};
  return std::ranges::any_of(kSigns,
                             [text](std::string_view sign) { return text.starts_with(sign); });
}

}  // namespace

std::string csv_cell(std::string_view text) {
  constexpr std::string_view kBlanks = "\t\r\n";
  const std::string clean = clean_text(text);
  const bool quoted = clean.find_first_of("\",\r\n;") != std::string::npos ||
                      clean.starts_with(' ') || clean.ends_with(' ');
  std::string cell = quoted ? "\"" : "";
  cell += !clean.empty() && kBlanks.contains(clean.front()) ? "'" : "";
  // Where semicolons separate cells, as in some countries, a quote within a cell holds nothing
  // together: what follows them, or a line end, is a cell of its own.
  bool begins = true;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const char c = clean[i];
    cell += begins && begins_formula(std::string_view(clean).substr(i)) ? "'" : "";
    cell.append(c == '"' ? 2 : 1, c);
    begins = c == ';' || kBlanks.contains(c);
  }
  return cell + (quoted ? "\"" : "");
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins_address = text.substr(i).starts_with("://") ||
                                (c == '.' && i >= 3 && to_lower(text.substr(i - 3, 3)) == "www");
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (begins_address || std::string_view("\\`*_[]()#|!~@$").contains(c)) {
        out += '\\';
      }
      out += c;
    }
  }
  return out;
}

}  // namespace ceems
