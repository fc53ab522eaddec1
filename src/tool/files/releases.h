#pragma once

#include <string>
#include <vector>

#include "config/yaml.h"

namespace ceems::tool {

/// What in a configuration file some release of CEEMS would refuse or ignore, one sentence each:
/// for sites that come from another release, or want to be able to go back to one. Keys that only
/// this project has are ignored by all releases and not listed.
std::vector<std::string> release_notes(const config::Node& document);

}  // namespace ceems::tool
