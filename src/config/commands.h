#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "config/flags.h"

namespace ceems::config {

/// The commands of a program, such as `ceems_tool check site`, each with its own flags. The grammar
/// is that of kingpin 2.4.0: the words of the command come first, then flags and positional
/// arguments of this command.
///
/// `PROGRAM --help` lists the commands, `PROGRAM --help-long` the flags of all of them as well,
/// `PROGRAM COMMAND --help` the flags of one, and `PROGRAM help COMMAND` does the same. --help-man
/// and the --completion-script-* flags print a text about all commands, wherever they stand. Not
/// thread-safe.
class CommandSet {
 public:
  CommandSet(std::string program, std::string description);

  /// Adds a command. `words` are separated by blanks, `help` is one sentence. The flags may be
  /// filled at once and live as long as this object. A command cannot be the beginning of another.
  FlagSet& add(std::string_view words, const std::string& help);

  struct Outcome {
    FlagOutcome flags;
    std::string command;  ///< the words; empty if `flags.exit` is set before a command was read
  };
  /// Parses the command line with argv[0] being the program. Errors as in FlagSet::parse().
  Outcome parse(int argc, const char* const* argv);

 private:
  friend struct CommandTexts;

  struct Command {
    Command(std::string_view program, std::string_view name, const std::string& sentence);

    std::vector<std::string> words;
    std::string joined;  ///< the words with a blank between them
    std::string help;
    FlagSet flags;
  };

  [[nodiscard]] Command* find(const std::vector<std::string>& words);
  /// The words that may follow these, without repetitions, in the order of the commands.
  [[nodiscard]] std::vector<std::string> next_words(const std::vector<std::string>& words) const;
  [[nodiscard]] Outcome error(const std::string& message) const;
  [[nodiscard]] Outcome unknown(const std::vector<std::string>& words, std::string_view word) const;
  Outcome help(const std::vector<std::string>& words, bool with_flags);

  std::string program_;
  std::string description_;
  std::deque<Command> commands_;
};

}  // namespace ceems::config
