#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::net {

/// Header fields in the order received. Names are compared without regard to case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// First value of a header, or null.
const std::string* find_header(const Headers& headers, std::string_view name);

/// A request as handlers see it. It is valid only during the call of the handler.
struct Request {
  std::string method;  ///< as received; methods are case-sensitive
  std::string target;  ///< raw request target
  std::string path;    ///< percent-decoded path without query
  std::string query;   ///< raw text after '?', or empty
  Headers headers;
  std::string body;
  bool body_missing = false;   ///< the header was enough (ServerOptions::needs_body)
  std::string remote_address;  ///< "192.0.2.1", "2001:db8::1", or "unix"
  bool tls = false;
  std::string authenticated_user;  ///< basic-auth user of the web configuration, or empty
  /// Requested when the answer is no longer needed: within a second after the client has
  /// left, or when the server stops. Only for requests of ServerOptions::waits.
  std::stop_token given_up;
};

/// The decoded key=value pairs of a query or form, in order and including repeated keys. '+' is
/// decoded as a space.
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query);

/// Percent-encodes all characters except the unreserved ones (RFC 3986).
std::string url_encode(std::string_view text);
/// Appends what url_encode() returns.
void append_url_encoded(std::string& out, std::string_view text);
/// Appends a part of a line in a request or response head. Line ends and null bytes become spaces.
void append_in_line(std::string& out, std::string_view text);

enum class Plus : std::uint8_t { kStays, kIsBlank };
/// Decodes percent-encoding. Returns nothing if a '%' is not followed by two hexadecimal digits.
/// '+' means a space in forms (https://url.spec.whatwg.org/#urlencoded-parsing) and itself
/// elsewhere.
std::optional<std::string> url_decode(std::string_view text, Plus plus = Plus::kStays);

/// Removes "//" and dot segments from a path and keeps a slash at its end. Returns nothing if the
/// path is already clean.
std::optional<std::string> clean_path(std::string_view path);

struct Relay;  // relay.h

/// The response of a handler. A body of unknown length is streamed with chunked transfer, in
/// constant memory: `next_chunk` appends the next piece to its argument and returns false when
/// nothing is left.
struct Response {
  int status = 200;
  Headers headers;  ///< the server sets Content-Length, Date, Connection, Transfer-Encoding
  std::string body;
  std::function<bool(std::string&)> next_chunk;
  /// If set, another server gives the response, and all other members are ignored.
  std::shared_ptr<Relay> relay;

  /// Replaces the value of the first field with this name, in any case, or adds the field.
  void set_header(std::string name, std::string value);
};

/// Redirects (301) to the clean form of the path of the request, and keeps the query. Returns false
/// if the path is already clean.
bool redirect_to_clean_path(const Request& request, Response& response);

/// Reason phrase of a status (RFC 9110), or "Unknown".
std::string_view status_text(int status);

/// Sets a plain-text response as Go's http.Error does: "text/plain; charset=utf-8", nosniff, and a
/// line end after `text`.
void plain_text(Response& response, int status, std::string_view text);

/// A synchronous handler. It runs on the worker threads of the server, several calls at a time. An
/// exception is logged and answered with 500 and a plain-text body.
using Handler = std::function<void(const Request&, Response&)>;

}  // namespace ceems::net
