#pragma once

#include <string>

#include "config/commands.h"

namespace ceems::config {

/// The texts about all commands of a program. Used only by the implementation of CommandSet.
struct CommandTexts {
  /// The text of --help: usage line, description, and the commands that begin with `words`, each
  /// with its sentence. That of --help-long has the flags of each command as well.
  static std::string help(const CommandSet& set,
                          const std::vector<std::string>& words,
                          bool with_flags);
  /// A man page of section 8 with a section for each command.
  static std::string man_page(const CommandSet& set);
  /// Shell scripts that complete words of commands and names of flags.
  static std::string completion_bash(const CommandSet& set);
  static std::string completion_zsh(const CommandSet& set);
  static std::string completion_fish(const CommandSet& set);
};

}  // namespace ceems::config
