#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/flag.h"

namespace ceems::config {

/// A flag given on the command line.
struct GivenFlag {
  Flag* flag;
  std::string value;  ///< "true" or "false" for a boolean
  std::string name;   ///< its name or alias, as given
};

/// A parsed command line. The values have not been checked yet.
struct Arguments {
  std::vector<GivenFlag> flags;  ///< in command-line order, including repeated flags
  std::vector<std::string> positionals;
};

/// Parses a command line, without the program name, by the grammar of FlagSet, and reads the files
/// that @path arguments name. The result points into `flags`, which must contain "help". Errors are
/// worded for the user: kInvalidArgument when the grammar or `flags` do not allow an argument, or
/// the code of the system call that failed on a file.
Result<Arguments> read_arguments(std::span<const char* const> arguments,
                                 std::span<Flag> flags,
                                 bool takes_positionals);

}  // namespace ceems::config
