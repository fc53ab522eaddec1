#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/encoding.h"
#include "net/http.h"

namespace ceems::net {

/// One request and its response, from the handler to the bytes that are sent. Sockets are handled
/// elsewhere. The functions that call the handler, its `next_chunk` or a compression library run on
/// a worker thread.
struct Exchange {
  Request request;
  Response response;
  bool http_1_0 = false;
  bool keep_alive = false;

  Encoding encoding = Encoding::kIdentity;
  std::optional<Compressor> compressor;
  bool streaming = false;               ///< more pieces follow: no Content-Length
  std::optional<std::uint64_t> length;  ///< of a body that is not in `response`
  bool failed = false;                  ///< within a body: the connection must be broken off
};

/// Runs the handler. An exception becomes 500.
void run_handler(const Handler& handler, Exchange& exchange);

/// Chooses the content coding. Then compresses the body, or takes the first piece of a streamed
/// one. After that, response.body holds what to send first.
void prepare_body(Exchange& exchange, int gzip_level);

/// The next piece of a streamed body. Empty at its end, and when `failed` is set.
std::string next_piece(Exchange& exchange);

/// The status line and the fields, up to and including the empty line. The fields in `extra` come
/// from the web configuration and replace the handler's fields of the same name. Line ends in
/// values become spaces.
std::string header_text(const Exchange& exchange, const Headers& extra, std::string_view date);

/// True if a body is sent with the response (RFC 9110 §6.4.1).
bool sends_body(const Exchange& exchange);
/// The same, but treats HEAD like GET.
bool has_body_of_get(const Exchange& exchange);

}  // namespace ceems::net
