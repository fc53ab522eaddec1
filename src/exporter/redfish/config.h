#pragma once

#include <chrono>
#include <functional>
#include <map>
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
  std::string hostname;  ///< of the BMC; empty: read through IPMI
  std::optional<int> port;
  std::string username;  ///< empty for no authentication
  std::string password;
  bool use_session_token = true;            ///< false: basic authentication on each request
  std::chrono::milliseconds timeout{5000};  ///< of one request
  std::string external_url;                 ///< requests go there instead; without a trailing slash
  /// Ids of the chassis whose power is that of the node, for its energy. Chosen automatically if
  /// empty.
  std::vector<std::string> node_chassis;
  net::ClientOptions http;

  /// "https://bmc:443": the address of the BMC, for the header X-Redfish-Url.
  [[nodiscard]] std::string bmc_url() const;
  /// Where requests are sent.
  [[nodiscard]] std::string base_url() const;
  /// Whether a request reads files: certificates, keys, passwords, tokens.
  [[nodiscard]] bool reads_files() const;
};

/// What a configuration may refer to.
struct ConfigContext {
  std::string node_name;  ///< replaces {hostname}
  /// Value of an environment variable; empty if it is not set.
  std::function<std::string(const std::string&)> environment;
};

/// Parses the text of the file. `name` is its name for messages. Errors have the form "file:line:
/// where: message". Unknown keys are errors. Messages never contain secrets.
Result<Config> parse_config(std::string_view text,
                            std::string_view name,
                            const ConfigContext& context);

/// A power distribution unit in the file of --collector.pdu.config.file.
struct PduConfig {
  std::string name;                            ///< value of the label `pdu`; unique
  Config service;                              ///< with a hostname
  std::map<std::string, std::string> outlets;  ///< node by outlet (PduReader)
};
/// Parses the text of that file: at least one unit. Errors as above.
Result<std::vector<PduConfig>> parse_pdu_config(std::string_view text,
                                                std::string_view name,
                                                const ConfigContext& context);

}  // namespace ceems::exporter::redfish
