#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/kubeconfig.h"
#include "net/client/client.h"

namespace ceems::kube {

/// The options of an HTTP client for the API server: TLS, credentials and proxy of `access`, whose
/// files are read with `read`. The caller sets time and size limits. Passes on errors of `read`.
Result<net::ClientOptions> client_options(ApiAccess access, const ReadFile& read);

/// The address of the API server and the options of an HTTP client for it.
struct Connection {
  std::string server;
  net::ClientOptions options;
};
/// Finds the current connection. Called before each request, because credentials change.
using Connect = std::function<Result<Connection>(const std::stop_token&)>;

/// The error for a response other than 200: the status and the API server's message.
Error refusal(const net::ClientResponse& answer);

/// Gets a list or object and returns the body of a 200 response. Errors: any of the client, and
/// kUnavailable with the API server's message for any other status.
Result<std::string> get_json(net::Client& client, const std::string& url);

/// Encodes `text` as a value in a query (RFC 3986: all but unreserved characters as %XX).
std::string percent_encode(std::string_view text);

}  // namespace ceems::kube
