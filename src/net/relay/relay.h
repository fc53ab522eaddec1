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

/// Changes the body of an answer while it passes.
class BodyFilter {
 public:
  virtual ~BodyFilter() = default;
  /// Appends what goes on after this piece.
  virtual Result<> feed(std::string_view piece, std::string& out) = 0;
  virtual Result<> finish(std::string& out) = 0;
};

/// How passing a request on ended.
struct RelayEnd {
  int status = 0;                      ///< that the client got
  const Upstream* upstream = nullptr;  ///< whose answer it was; null: of none
  std::string error = {};              ///< empty: the answer went through whole
  std::uint64_t body_bytes = 0;
};

/// A request that is passed on to another server instead of being answered. Set it in
/// Response::relay; the server then does the rest without a thread waiting: bodies stream in both
/// time and memory, nothing is sent to a second server that the first may have acted upon.
struct Relay {
  /// What one server gets. The line and fields are sent as they stand; Host, Content-Length and
  /// Connection are the relay's.
  struct Attempt {
    std::shared_ptr<Upstream> upstream;
    std::string method;
    std::string target;
    std::string host;
    Headers headers;
  };
  std::vector<Attempt> attempts;  ///< in this order, while nothing has come back
  std::string body;               ///< the same for all
  /// The request may be sent again after a first server broke off without an answer. Else only
  /// where no connection was made.
  bool repeatable = false;
  /// For an answer with this status and these fields; null: it passes unchanged. A filtered answer
  /// loses its length and coding fields, so ask servers for no coding.
  std::function<std::unique_ptr<BodyFilter>(int, const Headers&)> filter;
  Response unavailable;  ///< the answer when no server gives one; 504 when one took too long
  std::function<void(const RelayEnd&)> done;
};

/// Fields of a message that concern one connection only (RFC 9110 §7.6.1), those that Connection
/// names included, and those of the proxy's own hop.
class HopFields {
 public:
  explicit HopFields(const Headers& headers);
  /// `low`: a name in lower case.
  [[nodiscard]] bool contains(std::string_view low) const;

 private:
  std::vector<std::string> named_;  ///< by Connection
};
Headers without_hop_fields(const Headers& headers);

}  // namespace ceems::net
