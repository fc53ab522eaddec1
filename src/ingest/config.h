#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "model/unit.h"
#include "net/client/client.h"

namespace ceems::ingest {

/// One entry of `clusters` in the configuration.
struct ClusterConfig {
  model::Cluster cluster;
  std::string web_url;
  net::ClientOptions web;
  std::string cli_path;  ///< directory of sacct and sacctmgr
  std::map<std::string, std::string> cli_environment;
  config::Node extra;  ///< extra_config, which the manager parses
};

/// One entry of `updaters` in the configuration.
struct UpdaterConfig {
  std::string id;
  std::string kind;  ///< "tsdb"
  std::string web_url;
  net::ClientOptions web;
  config::Node extra;
};

/// Reads the lists `clusters` and `updaters` of the configuration (docs/api/configuration.md).
/// Relative file names in HTTP client blocks are relative to `directory`. Errors: kInvalidArgument
/// with file and line.
Result<> read_clusters(const config::Node& node,
                       const std::string& directory,
                       std::vector<ClusterConfig>& clusters);
Result<> read_updaters(const config::Node& node,
                       const std::string& directory,
                       std::vector<UpdaterConfig>& updaters);

/// Whether one of the updaters is to give custom metrics, for which older databases lack columns.
bool has_custom_metrics(const std::vector<UpdaterConfig>& updaters);

/// net::client_options() with the user agent ceems_api_server.
Result<net::ClientOptions> client_options(const config::Node& node,
                                          const std::string& directory,
                                          std::initializer_list<std::string_view> others);

}  // namespace ceems::ingest
