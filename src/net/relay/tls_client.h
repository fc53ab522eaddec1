#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/client/client.h"

struct ssl_ctx_st;

namespace ceems::net {

/// Creates the client side of TLS from a `tls_config`. The certificate of the server is checked
/// against `ca` or `ca_file`, or else the CAs of the system, and must be valid for `server_name`,
/// or else `host`. `insecure_skip_verify` turns these checks off. kInvalidArgument names the file
/// or key and what is wrong with it.
Result<std::shared_ptr<ssl_ctx_st>> make_client_tls_context(const TlsOptions& options,
                                                            const std::string& host);

}  // namespace ceems::net
