#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/client/client.h"

struct ssl_ctx_st;

namespace ceems::net {

/// Client side of TLS as `tls_config` asks: certificates are checked against `ca`/`ca_file`, else
/// the system's, and must be for `host` (or `server_name`), unless `insecure_skip_verify`.
/// kInvalidArgument names the file or key and what is wrong with it.
Result<std::shared_ptr<ssl_ctx_st>> make_client_tls_context(const TlsOptions& options,
                                                            const std::string& host);

}  // namespace ceems::net
