#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::api {

/// Nodes that jobs can ask for: a partition of this site, or of another site that its users may
/// use. What the file does not say is absent.
struct Resource {
  std::string cluster = {};    ///< of a partition of this site; empty: any cluster
  std::string site = {};       ///< another site; empty: this one
  std::string partition = {};  ///< of another site it may be empty
  std::string url = {};        ///< where to read about it
  std::string audience = {}, note = {};
  std::optional<double> nodes = {};                         ///< most of one job
  std::optional<double> cpus = {}, memory = {}, gpus = {};  ///< of a node; memory in bytes
  std::optional<double> time_limit = {};                    ///< in seconds
  std::optional<double> core_hour = {}, gpu_hour = {};      ///< prices in the currency of the site
  /// The size from which a job belongs there.
  std::optional<double> least_nodes = {}, least_cpus = {}, least_gpus = {};
};

/// Reads resources.yml (docs/check.md). kInvalidArgument with file, line and key.
Result<std::vector<Resource>> read_resources(const config::Node& document);

}  // namespace ceems::api
