#include "base/json.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/utf8.h"

namespace ceems {
namespace {

/// For each byte, whether it is written unescaped. Bytes beyond ASCII are false:
/// append_character() handles them.
using PlainBytes = std::array<bool, 256>;

constexpr PlainBytes plain_bytes(std::string_view escaped) {
  PlainBytes plain{};
  for (std::size_t byte = 0x20; byte < 0x80; ++byte) {
    plain.at(byte) = !escaped.contains(static_cast<char>(byte));
  }
  return plain;
}

constexpr PlainBytes kPlainInHtml = plain_bytes("\"\\<>&");
constexpr PlainBytes kPlainElsewhere = plain_bytes("\"\\\x7F");

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
    case '\\':
      out += '\\';
      out += c;
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  }
}

/// Appends the first character of `text`, which is not ASCII, and returns its length.
std::size_t append_character(std::string& out, std::string_view text, JsonEscape escape) {
  const std::size_t length = utf8_length(text);
  const bool html = escape == JsonEscape::kHtml;
  if (length == 0) {
    out += html ? "\\ufffd" : kReplacementCharacter;
    return 1;
  }
  const std::string_view character = text.substr(0, length);
  if (html && character == "\xE2\x80\xA8") {
    out += "\\u2028";
  } else if (html && character == "\xE2\x80\xA9") {
    out += "\\u2029";
  } else {
    out += character;
  }
  return length;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, JsonEscape escape) {
  const PlainBytes& plain = escape == JsonEscape::kHtml ? kPlainInHtml : kPlainElsewhere;
  out += '"';
  const char* place = text.data();
  const char* const end = place + text.size();
  const char* begin = place;  // of the unescaped text that is not written yet
  while (true) {
    while (place != end && plain[static_cast<unsigned char>(*place)]) {
      ++place;
    }
    out.append(begin, static_cast<std::size_t>(place - begin));
    if (place == end) {
      break;
    }
    if (static_cast<unsigned char>(*place) < 0x80U) {
      append_escaped(out, *place);
      ++place;
    } else {
      place += append_character(out, {place, end}, escape);
    }
    begin = place;
  }
  out += '"';
}

JsonWriter& JsonWriter::value(double number) {
  fmt::format_to(std::back_inserter(begin_value()), "{}", std::isfinite(number) ? number : 0.0);
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t number) {
  const fmt::format_int text(number);
  begin_value().append(text.data(), text.size());
  return *this;
}

}  // namespace ceems
