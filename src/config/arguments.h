#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/flag.h"

namespace ceems::config {

/// A flag as it stands on the command line.
struct GivenFlag {
  Flag* flag;
  std::string value;  ///< "true" or "false" for a boolean
};

/// A command line that follows the grammar; values are not checked yet.
struct Arguments {
  std::vector<GivenFlag> flags;  ///< in the order of the command line, repeated ones included
  std::vector<std::string> positionals;
};

/// Reads a command line without the program's name by the grammar of FlagSet; reads the files that
/// @path arguments name. The result points into `flags`, which must hold "help".
/// Errors, in the user's words: kInvalidArgument for what the grammar or `flags` do not allow, or
/// the code of the system call that failed on a file.
Result<Arguments> read_arguments(std::span<const char* const> arguments,
                                 std::span<Flag> flags,
                                 bool takes_positionals);

}  // namespace ceems::config
