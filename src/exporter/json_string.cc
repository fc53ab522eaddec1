#include "exporter/json_string.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::exporter {
namespace {

/// Bytes of the well-formed character at the front of `text`; 0 where there is none.
std::size_t character_length(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(4, text.size()); ++length) {
    if (is_utf8(text.substr(0, length))) {
      return length;
    }
  }
  return 0;
}

}  // namespace

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
    } else if (const std::size_t whole = character_length(text); whole > 0) {
      length = whole;
      out.append(text.substr(0, length));
    } else {
      out += "\xEF\xBF\xBD";
    }
    text.remove_prefix(length);
  }
  out.push_back('"');
}

}  // namespace ceems::exporter
