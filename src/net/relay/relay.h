#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"
#include "net/relay/upstream.h"

namespace ceems::net {

/// Rewrites the body of a response while it is passed on.
class BodyFilter {
 public:
  virtual ~BodyFilter() = default;
  /// Takes the next piece of the body and appends its replacement to `out`.
  virtual Result<> feed(std::string_view piece, std::string& out) = 0;
  /// Called once after the last piece; appends the rest.
  virtual Result<> finish(std::string& out) = 0;
};

/// The outcome of a relayed request.
struct RelayEnd {
  int status = 0;                      ///< the status that the client got
  const Upstream* upstream = nullptr;  ///< the server that answered; null: none
  std::string error = {};              ///< empty: the whole response was passed on
  std::uint64_t body_bytes = 0;
  std::size_t broken = 0;  ///< servers that closed the connection without an answer
};

/// A request that is passed on to another server instead of being answered here. Set it in
/// Response::relay. The server then does the rest without blocking a thread, and streams the body
/// of the response. Unless `repeatable`, a request that one server may have acted upon is not sent
/// to another.
struct Relay {
  /// The request for one server. The method, target and fields are sent as given. The relay adds
  /// Host and Content-Length, so `headers` must not contain them or Connection.
  struct Attempt {
    std::shared_ptr<Upstream> upstream;
    std::string method;
    std::string target;
    std::string host;
    Headers headers;
  };
  std::vector<Attempt> attempts;  ///< tried in this order until a server responds
  std::string body;               ///< the same for all attempts
  /// The request may be sent again after a server has broken off without a response. Otherwise the
  /// next server is tried only if no connection was made.
  bool repeatable = false;
  std::string user = {};  ///< whose request it is (Upstream::broke_off)
  /// Returns the filter for a response with this status and these fields, or null to pass it on
  /// unchanged. A filtered response loses its length and content coding, so do not ask the servers
  /// for one.
  std::function<std::unique_ptr<BodyFilter>(int, const Headers&)> filter;
  Response unavailable;  ///< sent if no server responds; its status is 504 after a timeout
  /// Called once on the I/O thread, also if the client left. May be empty.
  std::function<void(const RelayEnd&)> done;
};

/// The fields of a message that concern a single connection (RFC 9110 §7.6.1), including those that
/// Connection names and those for authentication at the proxy.
class HopFields {
 public:
  explicit HopFields(const Headers& headers);
  /// `low` is a name in lower case.
  [[nodiscard]] bool contains(std::string_view low) const;

 private:
  std::vector<std::string> named_;  ///< the names in Connection, sorted
};
/// The fields that may be passed on.
Headers without_hop_fields(const Headers& headers);

}  // namespace ceems::net
