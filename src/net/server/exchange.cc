#include "net/server/exchange.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::net {

namespace {

constexpr std::size_t kPiece = std::size_t{64} * 1024;
/// Shorter bodies fit into one packet with their header anyway.
constexpr std::size_t kWorthCompressing = 512;

void internal_error(Exchange& exchange) {
  exchange.response = {};
  plain_text(exchange.response, 500, "Internal Server Error");
}

/// Appends the handler's chunks to `text` until it has the size of a piece. Returns false if
/// nothing is left.
bool take_chunks(Response& response, std::string& text) {
  while (text.size() < kPiece) {
    if (!response.next_chunk(text)) {
      response.next_chunk = nullptr;
      return false;
    }
  }
  return true;
}

bool status_has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

bool is_servers_own(std::string_view name) {
  return same_in_any_case(name, "content-length") || same_in_any_case(name, "date") ||
         same_in_any_case(name, "connection") || same_in_any_case(name, "transfer-encoding");
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  append_in_line(out, name);
  out += ": ";
  append_in_line(out, value);
  out += "\r\n";
}

std::string all_accepted_encodings(const Headers& headers) {
  std::string all;
  for (const auto& [name, value] : headers) {
    if (same_in_any_case(name, "accept-encoding")) {
      all += all.empty() ? "" : ",";
      all += value;
    }
  }
  return all;
}

/// Compresses the body in place. If that fails, the body stays uncompressed.
void compress_whole(Exchange& exchange, int level) {
  std::string packed;
  Compressor compressor(exchange.encoding, level);
  if (auto done = compressor.add(exchange.response.body, true, packed); !done) {
    log::error("Compressing an answer failed", {{"err", done.error().message}});
    exchange.encoding = Encoding::kIdentity;
    return;
  }
  exchange.response.body = std::move(packed);
}

}  // namespace

void run_handler(const Handler& handler, Exchange& exchange) {
  try {
    handler(exchange.request, exchange.response);
    return;
  } catch (const std::exception& exception) {
    log::error("Handling a request failed",
               {{"path", printable(exchange.request.path)}, {"err", exception.what()}});
  } catch (...) {
    log::error("Handling a request failed", {{"path", printable(exchange.request.path)}});
  }
  internal_error(exchange);
}

void prepare_body(Exchange& exchange, int gzip_level) {
  Response& response = exchange.response;
  if (response.status < 200 || response.status > 999) {
    log::error("A handler gave a status that cannot be sent", {{"status", response.status}});
    internal_error(exchange);
  }
  if (!status_has_body(response.status)) {
    response.body.clear();
    response.next_chunk = nullptr;
  }
  const bool head = exchange.request.method == "HEAD";
  try {
    if (response.next_chunk && !head) {
      response.body.clear();
      exchange.streaming = take_chunks(response, response.body);
    }
  } catch (const std::exception& exception) {
    log::error("Handling a request failed",
               {{"path", printable(exchange.request.path)}, {"err", exception.what()}});
    internal_error(exchange);
  } catch (...) {
    log::error("Handling a request failed", {{"path", printable(exchange.request.path)}});
    internal_error(exchange);
  }
  const std::string* type = find_header(response.headers, "Content-Type");
  const bool may_compress =
      gzip_level > 0 && status_has_body(response.status) &&
      (response.body.size() >= kWorthCompressing || response.next_chunk || exchange.streaming) &&
      type != nullptr && compressible_type(*type) &&
      find_header(response.headers, "Content-Encoding") == nullptr;
  if (!may_compress) {
    return;
  }
  response.headers.emplace_back("Vary", "Accept-Encoding");
  exchange.encoding = negotiate_encoding(all_accepted_encodings(exchange.request.headers));
  if (exchange.encoding == Encoding::kIdentity) {
    return;
  }
  if (exchange.streaming) {
    exchange.compressor.emplace(exchange.encoding, gzip_level);
    std::string packed;
    if (auto done = exchange.compressor->add(response.body, false, packed); !done) {
      log::error("Compressing an answer failed", {{"err", done.error().message}});
      exchange.encoding = Encoding::kIdentity;
      exchange.compressor.reset();
    } else {
      response.body = std::move(packed);
    }
  } else if (!response.next_chunk) {
    compress_whole(exchange, gzip_level);
  }
  if (exchange.encoding != Encoding::kIdentity) {
    response.set_header("Content-Encoding", std::string(to_string(exchange.encoding)));
  }
}

std::string next_piece(Exchange& exchange) {
  std::string piece;
  try {
    while (piece.empty() && exchange.response.next_chunk) {
      std::string text;
      const bool more = take_chunks(exchange.response, text);
      if (!exchange.compressor) {
        piece = std::move(text);
      } else if (auto done = exchange.compressor->add(text, !more, piece); !done) {
        log::error("Compressing an answer failed", {{"err", done.error().message}});
        exchange.failed = true;
        return {};
      }
    }
  } catch (const std::exception& exception) {
    log::error("An answer broke off",
               {{"path", printable(exchange.request.path)}, {"err", exception.what()}});
    exchange.failed = true;
    return {};
  } catch (...) {
    log::error("An answer broke off", {{"path", printable(exchange.request.path)}});
    exchange.failed = true;
    return {};
  }
  return piece;
}

std::string header_text(const Exchange& exchange, const Headers& extra, std::string_view date) {
  const Response& response = exchange.response;
  std::string out;
  out.reserve(256);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", response.status,
                 status_text(response.status));
  for (const auto& [name, value] : response.headers) {
    if (!is_servers_own(name) && find_header(extra, name) == nullptr) {
      append_field(out, name, value);
    }
  }
  for (const auto& [name, value] : extra) {
    append_field(out, name, value);
  }
  append_field(out, "Date", date);
  const bool head_of_stream = exchange.request.method == "HEAD" && response.next_chunk;
  if (exchange.streaming) {
    if (!exchange.http_1_0) {
      append_field(out, "Transfer-Encoding", "chunked");
    }
  } else if (status_has_body(response.status) && !head_of_stream) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n",
                   exchange.length.value_or(response.body.size()));
  }
  if (!exchange.keep_alive) {
    append_field(out, "Connection", "close");
  } else if (exchange.http_1_0) {
    append_field(out, "Connection", "keep-alive");
  }
  out += "\r\n";
  return out;
}

bool has_body_of_get(const Exchange& exchange) {
  return status_has_body(exchange.response.status);
}

bool sends_body(const Exchange& exchange) {
  return exchange.request.method != "HEAD" && has_body_of_get(exchange);
}

}  // namespace ceems::net
