#pragma once

#include <string>
#include <vector>

namespace ceems::exporter {

/// A finding of `ceems_exporter doctor`.
struct Finding {
  enum class State {
    kWorks,   ///< present and readable
    kOff,     ///< not present or not requested; nothing to fix
    kCannot,  ///< present or requested, but it cannot work: `fix` says what to do
  };
  std::string collector;  ///< name of the collector; "host" and "exporter" for what all share
  State state = State::kWorks;
  std::string cause;  ///< one sentence on what was found
  std::string fix;    ///< exact command, flag or setting; empty unless kCannot (or worth knowing)
};

using Findings = std::vector<Finding>;

/// "works", "off", "cannot".
std::string_view to_string(Finding::State state);

}  // namespace ceems::exporter
