#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ceems {

// Reads JSON (RFC 8259). All functions accept any bytes and report what is not JSON by their
// result; they are safe for concurrent use.

/// Appends the JSON document `text` with sorted object keys, without blanks, strings escaped for
/// HTML (base/json.h) and numbers as they stand; of repeated keys the last counts. False, and
/// nothing appended, when `text` is not JSON or is nested deeper than 32 levels.
bool append_json(std::string& out, std::string_view text);
/// The same for a text that must be an object; false for other kinds of values.
bool append_json_object(std::string& out, std::string_view text);

/// Takes JSON tokens off the front of a text, for readers of a known form. Each function skips
/// blanks first. One that fails may have taken a part of its token. The text outlives the scanner.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : rest_(text) {}

  /// Takes the punctuation `c`, if it is next.
  bool take(char c);
  /// Takes "null", "true" or another word, if it is next.
  bool take_word(std::string_view word);
  [[nodiscard]] bool at(char c);
  [[nodiscard]] bool at_end();

  /// Replaces `out` by the content of a string. A lone surrogate becomes U+FFFD; bytes that are
  /// not UTF-8 stay.
  bool string(std::string& out);
  /// The text of a number; empty when none is next.
  std::string_view number();
  /// Takes the text before the next comma, brace or blank, at most 16 bytes. For words that are not
  /// JSON, such as NaN.
  std::string_view bare_word();
  /// Appends the next value, as append_json() does. `depth` counts the objects and arrays around
  /// it.
  bool value(std::string& out, int depth);

 private:
  void skip_blanks();
  bool escape(std::string& out);
  std::optional<std::uint32_t> hex4();
  bool object(std::string& out, int depth);
  bool array(std::string& out, int depth);

  std::string_view rest_;
};

/// Reads an object: calls `member` with the name of each member, whose value it takes. Returns
/// false if the text is not an object, or if `member` does.
template <typename Member>
bool each_member(JsonScanner& scanner, const Member& member) {
  if (!scanner.take('{')) {
    return false;
  }
  if (scanner.take('}')) {
    return true;
  }
  std::string name;
  do {
    if (!scanner.string(name) || !scanner.take(':') || !member(std::as_const(name))) {
      return false;
    }
  } while (scanner.take(','));
  return scanner.take('}');
}

}  // namespace ceems
