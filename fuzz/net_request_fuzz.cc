// HTTP requests as they arrive at a socket, in one piece and byte by byte. Both must give the same
// result.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/server/request_parser.h"

using ceems::net::RequestParser;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr ceems::net::RequestLimits kLimits{.max_header_bytes = 1024, .max_body_bytes = 4096};
  RequestParser whole(kLimits);
  CEEMS_CHECK(whole.feed(text) <= text.size());
  CEEMS_CHECK(whole.request().body.size() <= kLimits.max_body_bytes);

  RequestParser pieces(kLimits);
  std::string buffer;
  for (const char c : text) {
    buffer += c;
    buffer.erase(0, pieces.feed(buffer));
  }
  if (whole.state() == RequestParser::State::kDone) {
    CEEMS_CHECK(pieces.state() == RequestParser::State::kDone);
    CEEMS_CHECK(pieces.request().path == whole.request().path);
    CEEMS_CHECK(pieces.request().body == whole.request().body);
    CEEMS_CHECK(pieces.request().headers == whole.request().headers);
  }
  return 0;
}
