#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exporter/profile/symbol/binary_file.h"

namespace ceems::exporter::profile {

/// Debug files from elsewhere than the process's own file system, by build id.
class DebugFileSource {
 public:
  virtual ~DebugFileSource() = default;
  /// The debug file of this build id, unchecked. Nothing if there is none, or not yet: it may be
  /// fetched, which this does not wait for.
  virtual std::optional<BinaryFile> find(const std::string& build_id) = 0;
  /// The build ids of files that have arrived since the last call.
  virtual std::vector<std::string> arrived() = 0;
};

}  // namespace ceems::exporter::profile
