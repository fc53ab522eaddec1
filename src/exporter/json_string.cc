#include "exporter/json_string.h"

#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "base/utf8.h"

namespace ceems::exporter {
void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    const char c = text.front();
    std::size_t length = 1;
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c >= 0 && c < ' ') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
    } else if (const std::size_t whole = utf8_length(text); whole > 0) {
      length = whole;
      out.append(text.substr(0, length));
    } else {
      out += kReplacementCharacter;
    }
    text.remove_prefix(length);
  }
  out.push_back('"');
}

}  // namespace ceems::exporter
