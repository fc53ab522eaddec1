#pragma once

#include <memory>

#include "base/result.h"
#include "net/server/web_config.h"

struct ssl_ctx_st;

namespace ceems::net {

/// Server side of TLS as the configuration asks, ready for handshakes. Reads the files it names.
/// kInvalidArgument names the file (or key) and what is wrong with it: unreadable, no certificate
/// in it, a key that does not match, an encrypted key.
Result<std::shared_ptr<ssl_ctx_st>> make_tls_context(const WebConfig::Tls& config);

}  // namespace ceems::net
