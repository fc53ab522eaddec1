#pragma once

#include <string>
#include <string_view>

namespace ceems {

/// Identifies this build. The views are valid for the life of the program.
struct Version {
  std::string_view version;   ///< from the file VERSION, e.g. "0.1.0"
  std::string_view revision;  ///< git commit, or empty
  std::string_view branch;    ///< git branch, or empty
  std::string_view compiler;  ///< e.g. "g++ 12.2.0"
  std::string_view platform;  ///< e.g. "linux/amd64"
};
const Version& version();

/// The text of --version: name and version on the first line, then indented details.
std::string version_text(std::string_view program);

}  // namespace ceems
