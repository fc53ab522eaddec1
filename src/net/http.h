#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::net {

/// Header fields in the order received; names compare without case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// First value of a header, or null.
const std::string* find_header(const Headers& headers, std::string_view name);

/// One request as handlers see it. Valid during the handler call.
struct Request {
  std::string method;  ///< upper case as received
  std::string target;  ///< raw request target
  std::string path;    ///< percent-decoded path without query
  std::string query;   ///< raw text behind '?', or empty
  Headers headers;
  std::string body;
  std::string remote_address;  ///< "192.0.2.1", "2001:db8::1", or "unix"
  bool tls = false;
  std::string authenticated_user;  ///< basic-auth user of the web configuration, or empty
};

/// Decoded key=value pairs of a query or form text, in order, repeats kept. '+' is a blank.
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query);

/// Percent-encodes everything but unreserved characters (RFC 3986).
std::string url_encode(std::string_view text);
/// Appends what url_encode() returns.
void append_url_encoded(std::string& out, std::string_view text);
/// Appends a part of a request or answer head; what would end its line becomes a blank.
void append_in_line(std::string& out, std::string_view text);

enum class Plus : std::uint8_t { kStays, kIsBlank };
/// Undoes percent-encoding; nothing where '%' is not followed by two hex digits. '+' is a blank in
/// forms (https://url.spec.whatwg.org/#urlencoded-parsing) and itself elsewhere.
std::optional<std::string> url_decode(std::string_view text, Plus plus = Plus::kStays);

/// The path without "//" and dot segments, a slash at its end kept; nothing when it is clean.
std::optional<std::string> clean_path(std::string_view path);

struct Relay;  // relay.h

/// What a handler answers. A body of unknown length is streamed: `next_chunk` appends the next
/// piece to its argument and returns false when nothing is left (chunked transfer, flat memory).
struct Response {
  int status = 200;
  Headers headers;  ///< Content-Length, Date, Connection and Transfer-Encoding are the server's
  std::string body;
  std::function<bool(std::string&)> next_chunk;
  /// Another server gives the answer; nothing else counts then.
  std::shared_ptr<Relay> relay;

  void set_header(std::string name, std::string value);
};

/// Answers 301 to the clean spelling of the request's path, query kept; false when it is clean.
bool redirect_to_clean_path(const Request& request, Response& response);

/// Reason phrase of a status (RFC 9110), or "Unknown".
std::string_view status_text(int status);

/// Plain text answer in the manner of Go's http.Error: text/plain; charset=utf-8, nosniff, line
/// end.
void plain_text(Response& response, int status, std::string_view text);

/// Sync handler; runs on one of the server's worker threads, several at once. An exception becomes
/// 500 with a plain text body and is logged.
using Handler = std::function<void(const Request&, Response&)>;

}  // namespace ceems::net
