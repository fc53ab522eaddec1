// Responses of HTTP servers as they arrive at a socket, in one piece and byte by byte. Both must
// give the same result, except that a line that is too long is accepted if it is complete.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/relay/answer_parser.h"

using ceems::net::AnswerParser;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const bool to_head = (data[0] & 1U) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr std::size_t kMaxHeaderBytes = 1024;
  AnswerParser whole(to_head, kMaxHeaderBytes);
  std::string whole_body;
  const std::size_t used = whole.feed(text, whole_body);
  CEEMS_CHECK(used <= text.size());
  CEEMS_CHECK(whole_body.size() <= text.size());

  AnswerParser pieces(to_head, kMaxHeaderBytes);
  std::string pieces_body;
  std::string buffer;
  for (const char c : text) {
    buffer += c;
    buffer.erase(0, pieces.feed(buffer, pieces_body));
  }
  const bool too_long = pieces.failure() == "header limit exceeded";
  CEEMS_CHECK(buffer.size() <= kMaxHeaderBytes + 1 || pieces.state() != AnswerParser::State::kBody);
  if (whole.state() == AnswerParser::State::kDone && !too_long) {
    CEEMS_CHECK(pieces.state() == AnswerParser::State::kDone);
    CEEMS_CHECK(pieces.status() == whole.status());
    CEEMS_CHECK(pieces_body == whole_body);
    CEEMS_CHECK(pieces.headers() == whole.headers());
    CEEMS_CHECK(!to_head || whole_body.empty());
    CEEMS_CHECK(buffer.size() == text.size() - used);
  }
  whole.end();
  CEEMS_CHECK(whole.state() == AnswerParser::State::kDone ||
              whole.state() == AnswerParser::State::kFailed);
  return 0;
}
