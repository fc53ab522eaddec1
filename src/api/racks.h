#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::api {

/// Where a node stands.
struct RackPlace {
  std::string rack = {};
  std::optional<std::int64_t> slot = {};  ///< counted from the top
};

/// Where the nodes of the site stand: from a file, or from their names. Cheap to copy; safe for
/// concurrent use.
class Racks {
 public:
  Racks() = default;  ///< nothing is known

  /// Reads the block `racks`: `file` names a YAML file with the nodes of each rack from the top
  /// down, as node lists of SLURM; `pattern` is an RE2 expression that matches whole names, with
  /// the groups `rack` and, if names hold it, `slot`. The file counts first. kInvalidArgument for
  /// anything else, and for a node that is in two racks.
  static Result<Racks> read(const config::Node& node, const std::string& directory);

  /// Nothing if it is not known.
  [[nodiscard]] std::optional<RackPlace> find(const std::string& host) const;

 private:
  struct Pattern;

  Result<> read_file(const std::string& path);

  std::map<std::string, RackPlace> places_;
  std::shared_ptr<const Pattern> pattern_;  // null: none
};

}  // namespace ceems::api
