#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::mail {

/// A mail with a text and, if there is one, the same as HTML. All texts may be anything; they
/// become header fields and parts and can never be taken for another field or part.
struct Message {
  std::string from_name = {}, from = {};  ///< the address must be is_address()
  std::vector<std::string> to = {};       ///< is_address()
  std::string subject = {};
  std::string text = {}, html = {};
  std::string id = {};           ///< of the Message-ID: letters, digits, dots and @
  std::string unsubscribe = {};  ///< https: or mailto: URL; empty: without
  bool one_click = false;        ///< the URL takes a POST without asking (RFC 8058)
  std::string references = {};   ///< the Message-ID of the thread, in the same form as id
  std::int64_t date_ms = 0;
};

/// The message of RFC 5322 and MIME, with CR LF.
std::string to_message(const Message& message);

/// A header field without its line end. Values that are not short ASCII become encoded words (RFC
/// 2047), folded; control characters and bidirectional overrides become blanks.
std::string header_field(std::string_view name, std::string_view value);

}  // namespace ceems::mail
