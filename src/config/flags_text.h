#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/flag.h"

namespace ceems::config {

// Used only by the implementation of FlagSet.

/// What the help texts are made from.
struct HelpSource {
  std::string_view program;  ///< followed by the words of the command, if there is one
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
/// A script that completes with `body`, for a directory of $fpath or for eval.
std::string zsh_script(std::string_view program, std::string_view body);
std::string completion_fish(const HelpSource& source);

// Parts of these texts, which commands_text.cc uses as well.

/// The program in "program command ...".
std::string_view program_name(std::string_view program);
/// The width of help texts, in columns.
std::size_t help_width();
/// The lines of a text, broken between words. At least one line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);
/// The flags that are not hidden: "help" first, then in the order in which they were added.
std::vector<const Flag*> visible(const HelpSource& source);
/// Flags and what they do in two columns, behind `margin` blanks.
std::string flag_rows(std::span<const Flag* const> flags, std::size_t width, std::size_t margin);
/// A text for a man page.
std::string roff(std::string_view text);
/// The entry of a flag in a man page.
std::string man_entry(const Flag& flag);
/// The program's name as part of the name of a shell function.
std::string identifier(std::string_view program);
/// Names of the flags as they are typed: " --name --no-name".
std::string flag_words(const HelpSource& source);
/// Arguments of zsh's _arguments for the flags, one per line.
std::string zsh_arguments(const HelpSource& source);
/// Lines of fish's `complete` for the flags. `condition` is "" or "-n '...' ".
std::string fish_flags(const HelpSource& source, std::string_view condition);
/// A text in single quotes for fish.
std::string fish_quote(std::string_view text);

}  // namespace ceems::config
