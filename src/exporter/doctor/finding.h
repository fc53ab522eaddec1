#pragma once

#include <string>
#include <vector>

namespace ceems::exporter {

/// What `ceems_exporter doctor` has to say of one thing it looked at.
struct Finding {
  enum class State {
    kWorks,   ///< there and readable
    kOff,     ///< not here, or not asked for; nothing to mend
    kCannot,  ///< here or asked for, but it cannot work: `fix` says what to do
  };
  std::string collector;  ///< the word of the collector; "host" and "exporter" for what all share
  State state = State::kWorks;
  std::string cause;  ///< one sentence on what was found
  std::string fix;    ///< exact command, flag or setting; empty unless kCannot (or worth knowing)
};

using Findings = std::vector<Finding>;

/// "works", "off", "cannot".
std::string_view to_string(Finding::State state);

}  // namespace ceems::exporter
