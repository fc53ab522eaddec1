#include "api/resource/json_text.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::api {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : clean_text(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// Length of the well-formed sequence at the front, 0 where there is none.
std::size_t sequence_length(std::string_view text) {
  for (std::size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    if (is_utf8(text.substr(0, length))) {
      return length;
    }
  }
  return 0;
}

}  // namespace

std::string clean_text(std::string_view text) {
  if (is_utf8(text) && text.find('\0') == std::string_view::npos) {
    return std::string(text);
  }
  std::string out;
  while (!text.empty()) {
    const std::size_t length = text.front() == '\0' ? 0 : sequence_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void JsonObject::add_key(std::string_view key) {
  members_ += (members_.empty() ? "" : ",") + quoted(key) + ":";
}

void JsonObject::add(std::string_view key, std::string_view text) {
  add_key(key);
  members_ += quoted(text);
}

void JsonObject::add(std::string_view key, std::int64_t number) {
  add_key(key);
  members_ += fmt::format("{}", number);
}

void JsonObject::add(std::string_view key, double number) {
  add_key(key);
  members_ += fmt::format("{}", std::isfinite(number) ? number : 0.0);
}

void JsonObject::add(std::string_view key, const JsonObject& object) {
  add_key(key);
  members_ += object.text();
}

}  // namespace ceems::api
