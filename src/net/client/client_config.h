#pragma once

#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "base/result.h"
#include "config/yaml.h"
#include "net/client/client.h"

namespace ceems::net {

/// Reads the keys of Prometheus' http_config
/// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#http_config), which
/// stand beside others (`url`) in `node`. An absent node gives the defaults. Relative file names
/// are relative to `directory`. A `url` beside them that names a unix socket (unix_url.h) is read
/// for its path, and refused where it is none, or with TLS or a proxy. Unknown keys of `node`
/// itself are the caller's business, those of the mappings below are refused. Errors: "file:line:
/// where: message", without any secret.
Result<ClientOptions> client_options(const config::Node& node,
                                     const std::filesystem::path& directory = {});

/// The same for a mapping that holds nothing else but `others`: unknown keys are refused.
Result<ClientOptions> client_options(const config::Node& node,
                                     const std::filesystem::path& directory,
                                     std::initializer_list<std::string_view> others);

}  // namespace ceems::net
