#pragma once

#include <memory>

#include "base/result.h"
#include "net/server/web_config.h"

struct ssl_ctx_st;

namespace ceems::net {

/// Creates the server side of TLS from the configuration, and reads the files that it names.
/// kInvalidArgument names the file (or key) and what is wrong with it: it is unreadable, it
/// contains no certificate, the key does not match or is encrypted.
Result<std::shared_ptr<ssl_ctx_st>> make_tls_context(const WebConfig::Tls& config);

}  // namespace ceems::net
