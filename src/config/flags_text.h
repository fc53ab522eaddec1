#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/flag.h"

namespace ceems::config {

// Shared by the sources of FlagSet only.

/// What is known of a program and its flags.
struct HelpSource {
  std::string_view program;
  std::string_view description;
  std::string_view positional;  ///< name of the positional arguments; empty: none are allowed
  std::string_view positional_help;
  std::span<const Flag> flags;
};

/// The text of --help: usage, description and flags in two columns, wrapped at $COLUMNS, else at
/// the width of the terminal, else at 80.
std::string help_text(const HelpSource& source);
/// A man page in roff, section 8.
std::string man_page(const HelpSource& source);
/// Scripts that complete the names of flags in a shell.
std::string completion_bash(const HelpSource& source);
std::string completion_zsh(const HelpSource& source);

}  // namespace ceems::config
