#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/kubeconfig.h"
#include "net/client/client.h"

namespace ceems::kube {

/// What an HTTP client needs to talk to the API server: TLS, credentials and proxy of `access`,
/// whose files are read with `read`. Time and size limits are the caller's to set. Errors are those
/// of `read`.
Result<net::ClientOptions> client_options(ApiAccess access, const ReadFile& read);

/// How to make an HTTP client for the API server at `server` now.
struct Connection {
  std::string server;
  net::ClientOptions options;
};
/// Finds it out: credentials change, so it is asked for each conversation.
using Connect = std::function<Result<Connection>(const std::stop_token&)>;

/// The error for an answer other than 200: status, and the message of the API server.
Error refusal(const net::ClientResponse& answer);

/// GET of a list or object: the body of a 200. Errors: those of the client, and kUnavailable with
/// the message of the API server for any other status.
Result<std::string> get_json(net::Client& client, const std::string& url);

/// `text` as a value in a query (RFC 3986: all but unreserved characters as %XX).
std::string percent_encode(std::string_view text);

}  // namespace ceems::kube
