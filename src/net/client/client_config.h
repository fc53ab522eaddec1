#pragma once

#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "base/result.h"
#include "config/yaml.h"
#include "net/client/client.h"

namespace ceems::net {

/// Reads the keys of Prometheus' http_config
/// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#http_config) from
/// `node`, which may contain other keys, such as `url`. An absent node gives the defaults. Relative
/// file names are resolved against `directory`. If `url` names a unix socket (unix_url.h), the
/// options get its path; an invalid path is an error, and so is a socket together with TLS or a
/// proxy. Unknown keys of `node` itself are left to the caller; unknown keys of mappings in it are
/// errors. Errors: "file:line: where: message", without any secret.
Result<ClientOptions> client_options(const config::Node& node,
                                     const std::filesystem::path& directory = {});

/// The same, but all keys of `node` other than the keys of http_config and `others` are errors.
Result<ClientOptions> client_options(const config::Node& node,
                                     const std::filesystem::path& directory,
                                     std::initializer_list<std::string_view> others);

}  // namespace ceems::net
