#include "base/text/cells.h"

#include "base/utf8.h"

namespace ceems {

std::string csv_cell(std::string_view text) {
  const std::string clean = clean_text(text);
  const bool formula = !clean.empty() && std::string_view("=+-@\t\r").contains(clean.front());
  const bool quoted = clean.find_first_of("\",\r\n;") != std::string::npos ||
                      clean.starts_with(' ') || clean.ends_with(' ');
  std::string cell = quoted ? "\"" : "";
  cell += formula ? "'" : "";
  for (const char c : clean) {
    cell.append(c == '"' ? 2 : 1, c);
  }
  return cell + (quoted ? "\"" : "");
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\`*_[]()#|!~").contains(c)) {
        out += '\\';
      }
      out += c;
    }
  }
  return out;
}

}  // namespace ceems
