#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/client/client.h"

namespace ceems::exporter::redfish {

/// The file of --collector.redfish.config.file. Holds secrets; never logged.
struct Config {
  std::string protocol;  ///< "http" or "https"
  std::string hostname;  ///< of the BMC; empty: to be found out
  std::optional<int> port;
  std::string username;  ///< empty: no authentication
  std::string password;
  bool use_session_token = true;            ///< false: basic authentication on each request
  std::chrono::milliseconds timeout{5000};  ///< of one request
  std::string external_url;                 ///< requests go there instead; no slash at its end
  /// Ids of the chassis whose power is that of the node, for its energy. Empty: chosen by itself.
  std::vector<std::string> node_chassis;
  net::ClientOptions http;

  /// "https://bmc:443": where the BMC is, for the header X-Redfish-Url.
  [[nodiscard]] std::string bmc_url() const;
  /// Where requests go.
  [[nodiscard]] std::string base_url() const;
  /// True where a request reads files: certificates, keys, passwords, tokens.
  [[nodiscard]] bool reads_files() const;
};

/// What a configuration may refer to.
struct ConfigContext {
  std::string node_name;  ///< stands for {hostname}
  /// Value of an environment variable, empty when unset.
  std::function<std::string(const std::string&)> environment;
};

/// Parses the text of the file; `name` is for messages. Errors read "file:line: where: message";
/// unknown keys are errors, secrets are never in a message.
Result<Config> parse_config(std::string_view text,
                            std::string_view name,
                            const ConfigContext& context);

}  // namespace ceems::exporter::redfish
