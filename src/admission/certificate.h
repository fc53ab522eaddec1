#pragma once

#include <optional>
#include <string>

namespace ceems::admission {

/// When the server certificate of a web configuration ends, in epoch seconds. Nothing without TLS
/// or if the file cannot be read, which the server reports. Reads the files at each call.
std::optional<double> certificate_end(const std::string& web_config_file);

}  // namespace ceems::admission
