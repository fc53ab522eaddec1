#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/flag.h"

namespace ceems::config {

// Used only by the implementation of FlagSet.

/// What the help texts are made from.
struct HelpSource {
  std::string_view program;
  std::string_view description;
  std::string_view positional;  ///< name of the positional arguments; empty: none are allowed
  std::string_view positional_help;
  std::span<const Flag> flags;
};

/// The text of --help: usage line, description, and flags in two columns. It is wrapped at $COLUMNS
/// columns, or else at the width of the terminal, or else at 80.
std::string help_text(const HelpSource& source);
/// A man page of section 8, in roff.
std::string man_page(const HelpSource& source);
/// Shell scripts that complete the names of flags.
std::string completion_bash(const HelpSource& source);
std::string completion_zsh(const HelpSource& source);

}  // namespace ceems::config
