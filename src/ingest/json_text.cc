#include "ingest/json_text.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/utf8.h"

namespace ceems::ingest {
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

}  // namespace

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

}  // namespace ceems::ingest
