#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "net/server/web_config.h"

struct ssl_ctx_st;

namespace ceems::net {

/// Creates the server side of TLS from the configuration, and reads the files that it names.
/// kInvalidArgument names the file (or key) and what is wrong with it: it is unreadable, it
/// contains no certificate, the key does not match or is encrypted.
Result<std::shared_ptr<ssl_ctx_st>> make_tls_context(const WebConfig::Tls& config);

/// When the first of the certificates that the server presents (its own and its chain) expires, in
/// seconds since the epoch. Nothing if none of them has a readable end.
std::optional<std::int64_t> certificate_end(ssl_ctx_st& context);

}  // namespace ceems::net
