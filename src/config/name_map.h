#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::config {

/// `ceems_api_server.identity.header.map`: how logins of Grafana or of a proxy become the names
/// that clusters know. Without keys, names stay as they are. Applying it twice changes nothing
/// more: a table whose names would be mapped again is refused. Immutable.
class NameMap {
 public:
  NameMap() = default;

  /// Reads the mapping and the file of its table; a relative name starts at `directory`. No other
  /// login becomes `reserved`, the name of the service account. kInvalidArgument with file, line
  /// and key.
  static Result<NameMap> read(const Node& node,
                              const std::string& directory,
                              std::string_view reserved);

  /// The name for a login: that of the table, or the login without a domain or mail part that the
  /// configuration names, and in lower case if it says so.
  [[nodiscard]] std::string apply(std::string_view login) const;

 private:
  Result<> read_table(const std::string& file);
  [[nodiscard]] std::string mapped(std::string_view login) const;

  bool lower_case_ = false;
  std::vector<std::string> domains_, mails_;               ///< in lower case; "*": any
  std::map<std::string, std::string, std::less<>> table_;  ///< in lower case if lower_case_
  std::string reserved_;
};

}  // namespace ceems::config
