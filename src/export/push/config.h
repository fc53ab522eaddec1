#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "net/client/client.h"

namespace ceems::exporting {

enum class Protocol : std::uint8_t {
  kRemoteWrite,  ///< Prometheus remote write 1.0
  kOtlp,         ///< OTLP/HTTP with protobuf
};

/// An item of `ceems_api_server.export` (docs/export.md): where units are sent when they have
/// ended.
struct Target {
  std::string name = {};  ///< by which the database knows what it has received
  Protocol protocol = Protocol::kRemoteWrite;
  std::string url = {};  ///< as written; may hold a password
  net::ClientOptions client = {};
  bool with_user = false, with_project = false;
};

/// Reads the list. Errors: "file:line: key: message", without any secret.
Result<std::vector<Target>> read_targets(const config::Node& list, const std::string& directory);

}  // namespace ceems::exporting
