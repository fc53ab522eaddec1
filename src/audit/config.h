#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::audit {

/// The section `audit` of ceems_api_server and ceems_lb (docs/audit.md). Without a file and without
/// the journal, there is no audit.
struct Options {
  std::string file = {};
  bool journal = false;
  std::uint64_t max_bytes = 100'000'000;  ///< size at which files are rotated; 0: never
  int keep = 5;  ///< number of rotated files: FILE.1 (the newest), FILE.2 ...
  std::string journal_socket = "/run/systemd/journal/socket";

  [[nodiscard]] bool enabled() const { return journal || !file.empty(); }
  bool operator==(const Options&) const = default;
};

/// Reads the section, which may be absent. A relative file name starts at `directory`. Errors are
/// kInvalidArgument with file and line.
Result<Options> read_options(const config::Node& node, const std::string& directory);

}  // namespace ceems::audit
