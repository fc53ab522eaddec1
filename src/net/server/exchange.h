#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/encoding.h"
#include "net/http.h"

namespace ceems::net {

/// One request on its way through the handler to the bytes that go out. No sockets; the parts that
/// call foreign code (handler, chunks, compression) run on a worker thread.
struct Exchange {
  Request request;
  Response response;
  bool http_1_0 = false;
  bool keep_alive = false;

  Encoding encoding = Encoding::kIdentity;
  std::optional<Compressor> compressor;
  bool streaming = false;               ///< more pieces follow: no Content-Length
  std::optional<std::uint64_t> length;  ///< of a body that is not in the response
  bool failed = false;                  ///< in the midst of a body: the connection must break
};

/// Runs the handler. An exception becomes 500.
void run_handler(const Handler& handler, Exchange& exchange);

/// Settles coding and length: compresses the body, or takes the first piece of a streamed one. What
/// is to be sent first is in response.body.
void prepare_body(Exchange& exchange, int gzip_level);

/// The next piece of a streamed body, empty at its end.
std::string next_piece(Exchange& exchange);

/// Status line and fields up to the empty line. `extra` come from the web configuration and win
/// over the handler's of the same name. Line ends in values become blanks.
std::string header_text(const Exchange& exchange, const Headers& extra, std::string_view date);

/// True when the answer has a body at all (RFC 9110 §6.4.1).
bool sends_body(const Exchange& exchange);
/// The same, but for HEAD what GET would have.
bool has_body_of_get(const Exchange& exchange);

}  // namespace ceems::net
