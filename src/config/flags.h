#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::config {

struct Flag;

/// How a flag is described, besides its name and target.
struct FlagInfo {
  std::string help;              ///< one sentence
  std::string env = {};          ///< variable that gives the default when it is set and not empty
  std::string placeholder = {};  ///< shown as --name=PLACEHOLDER; empty: the default, or NAME
  bool hidden = false;           ///< not in --help, the man page and completion
};

/// What parse() decided.
struct FlagOutcome {
  std::optional<int> exit;  ///< set: print `text` and exit with this status
  std::string text;         ///< for stdout when `exit` is 0, else for stderr
};

/// The flags of a program. They follow the grammar of kingpin 2.4.0, the library that CEEMS 0.10.2
/// uses:
///
///   --name=value, --name value  a value; one that begins with '-' only after '='
///   --name, --no-name           a boolean
///   --                          ends the flags
///   @path                       the arguments in that file, one per line; blank lines and lines
///                               that begin with '#' are skipped
///
/// A list collects its values in order; any other flag may be given once. A number is read as a
/// decimal fraction and truncated: 1e2 is 100. The command line wins over the environment, which
/// wins over the default.
///
/// Every program has --help (-h) and --version, and hidden --help-long, --help-man,
/// --completion-script-bash and --completion-script-zsh: they print a text and end the program,
/// their --no- form too. Hidden --completion-bash has no effect. docs/configuration.md describes
/// all this for users.
///
/// A target holds the default when its flag is added and must outlive the set. Names of flags and
/// aliases are unique. Not thread-safe.
class FlagSet {
 public:
  FlagSet(std::string program, std::string description);
  ~FlagSet();
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

  void add(std::string_view name, bool& target, FlagInfo info);
  void add(std::string_view name, std::string& target, FlagInfo info);
  void add(std::string_view name, long& target, FlagInfo info);
  /// A list: given values replace the whole default.
  void add(std::string_view name, std::vector<std::string>& target, FlagInfo info);
  /// One of `choices`, matched exactly; the default need not be one of them.
  void add_enum(std::string_view name,
                std::string& target,
                std::vector<std::string> choices,
                FlagInfo info);
  /// A list of such values.
  void add_enums(std::string_view name,
                 std::vector<std::string>& target,
                 std::vector<std::string> choices,
                 FlagInfo info);
  /// Another, hidden name of a flag that was added before.
  void alias(std::string_view alias, std::string_view name);
  /// Allows positional arguments, which the usage line shows by this name; parse() replaces the
  /// content of `target`. Without this call every positional argument is an error.
  void positionals(std::string_view name, std::vector<std::string>& target, std::string help);

  /// Reads the command line, argv[0] being the program, and the environment into the targets.
  /// An error is one line with exit status 1, and may leave some targets set. It wins over --help
  /// and --version; of those, the first one wins.
  FlagOutcome parse(int argc, const char* const* argv);

  /// True when the flag with this name, by any alias or --no- form, was on the command line that
  /// parse() read last.
  [[nodiscard]] bool given(std::string_view name) const;
  /// The target of the flag with this name or alias, as text: one value for a scalar ("true" or
  /// "false" for a boolean), any number for a list, none when there is no such flag.
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// Names of the flags that are not hidden, without dashes, in the order in which they were added.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  void insert(Flag flag);
  void add_standard_flags();
  [[nodiscard]] FlagOutcome usage_error(std::string_view message) const;

  std::string program_;
  std::string description_;
  std::vector<Flag> flags_;
  std::string positional_name_;
  std::string positional_help_;
  std::vector<std::string>* positionals_ = nullptr;  // null: none are allowed
  bool ignored_ = false;  // target of the flags of every program, whose values do not matter
};

}  // namespace ceems::config
