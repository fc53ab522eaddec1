#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::tool {

/// What was found out about one configuration file.
struct FileCheck {
  std::string file;
  std::vector<std::string> programs;  ///< whose sections it has, and who would accept them
  std::vector<std::string> warnings;  ///< keys that are obsolete
  std::vector<std::string> releases;  ///< what other releases would not accept (release_notes())
  std::string error;                  ///< empty if all of them accept it
};

/// Checks a file as the programs whose sections it has would when they start, without connecting to
/// anything. Secrets that it names are not read. With `expand_env`, $NAME is replaced first.
FileCheck check_config_file(const std::string& file, bool expand_env);
/// The same for a document that was read. `directory` is where relative file names begin.
FileCheck check_config_document(const config::Node& document,
                                const std::string& text,
                                const std::string& file,
                                const std::string& directory);

}  // namespace ceems::tool
