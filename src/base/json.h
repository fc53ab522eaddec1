#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ceems {

/// Which characters a JSON string (RFC 8259) escapes. Both forms escape quotes, backslashes and
/// control characters; everything else is UTF-8 and is written as it is.
enum class JsonEscape : std::uint8_t {
  /// Safe inside HTML and JavaScript, as Go's encoding/json writes it: also <, >, &, U+2028 and
  /// U+2029. Each byte that is not UTF-8 becomes the escape \ufffd.
  kHtml,
  /// For logs, terminals and files: also DEL. Each byte that is not UTF-8 becomes the character
  /// U+FFFD.
  kPlain,
};

/// Appends `text` as a JSON string with its quotes. Any bytes are accepted.
void append_json_string(std::string& out,
                        std::string_view text,
                        JsonEscape escape = JsonEscape::kHtml);

/// Appends JSON to a string without blanks and puts the commas. The caller opens and closes
/// objects and arrays in pairs and writes a key before each value of an object; this is not
/// checked. Allocates only where the string has to grow. Not thread-safe.
class JsonWriter {
 public:
  /// `out` outlives the writer and may hold text already; only the writer and the users of
  /// begin_value() append to it meanwhile.
  explicit JsonWriter(std::string& out, JsonEscape escape = JsonEscape::kHtml)
      : out_(&out), escape_(escape) {}

  /// Continues the same document at the end of another string.
  void continue_in(std::string& out) { out_ = &out; }

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name) {
    append_json_string(begin_value(), name, escape_);
    *out_ += ':';
    first_ = true;
    return *this;
  }

  /// A key that is a JSON string already, quotes included: for names that are written very often.
  JsonWriter& raw_key(std::string_view quoted) {
    begin_value() += quoted;
    *out_ += ':';
    first_ = true;
    return *this;
  }

  JsonWriter& value(std::string_view text) {
    append_json_string(begin_value(), text, escape_);
    return *this;
  }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto truth) { return raw(truth ? "true" : "false"); }
  JsonWriter& value(std::nullptr_t /*null*/) { return raw("null"); }
  JsonWriter& value(std::signed_integral auto number) { return integer(number); }
  /// The shortest text that reads back as the same number. JSON has no NaN and no infinities:
  /// they become 0.
  JsonWriter& value(double number);

  /// A value that is JSON already; empty text is not.
  JsonWriter& raw(std::string_view json) {
    begin_value() += json;
    return *this;
  }
  /// The output, to which the caller appends one JSON value.
  std::string& begin_value() {
    if (!std::exchange(first_, false)) {
      *out_ += ',';
    }
    return *out_;
  }

  template <typename Value>
  JsonWriter& member(std::string_view name, const Value& content) {
    return key(name).value(content);
  }
  JsonWriter& raw_member(std::string_view name, std::string_view json) {
    return key(name).raw(json);
  }

 private:
  JsonWriter& open(char bracket) {
    begin_value() += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    *out_ += bracket;
    first_ = false;
    return *this;
  }
  JsonWriter& integer(std::int64_t number);

  std::string* out_;
  JsonEscape escape_;
  bool first_ = true;  // no value or key was written yet in the current object or array
};

}  // namespace ceems
