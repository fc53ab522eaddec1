#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::config {

struct Flag;
struct HelpSource;

/// The description of a flag, besides its name and target.
struct FlagInfo {
  std::string help;      ///< one sentence
  std::string env = {};  ///< environment variable that overrides the default if it is not empty
  std::string placeholder = {};  ///< shown as --name=PLACEHOLDER; empty: the default, or NAME
  bool hidden = false;           ///< left out of --help, the man page and completion
  char letter = '\0';            ///< its short form is -x; '\0': it has none
};

/// The result of parse().
struct FlagOutcome {
  std::optional<int> exit;  ///< if set, print `text` and exit with this status
  std::string text;         ///< for stdout when `exit` is 0, else for stderr
};

/// The command-line flags of a program. The grammar is that of kingpin 2.4.0, the library that
/// CEEMS 0.10.2 uses:
///
///   --name=value, --name value  a value; one that begins with '-' needs the '='
///   --name, --no-name           a boolean
///   -x, -xy, -x value, -xvalue  short forms, of which booleans may be joined
///   --                          everything after it is positional
///   @path                       replaced by the arguments in that file, one per line; blank
///                               lines and lines that begin with '#' are skipped
///
/// A list flag collects its values in order; any other flag may be given at most once under each of
/// its names (see alias()). A number is
/// parsed as floating point and truncated, so 1e2 is 100. The command line takes precedence over
/// the environment, which takes precedence over the default.
///
/// Every program has --help (-h) and --version, and the hidden flags --help-long, --help-man,
/// --completion-script-bash, --completion-script-zsh and --completion-script-fish. Each of them,
/// and its --no- form, prints a text and ends the program. The hidden --completion-bash has no
/// effect. docs/configuration.md describes the flags for users.
///
/// `program` may be followed by the words of a command ("ceems_tool check site"): then usage and
/// help name them all, errors and --version only the program.
///
/// The target of a flag holds the default when the flag is added, and must outlive the set. Flag
/// names and aliases must be unique. Not thread-safe.
class FlagSet {
 public:
  FlagSet(std::string program, std::string description);
  ~FlagSet();
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

  void add(std::string_view name, bool& target, FlagInfo info);
  void add(std::string_view name, std::string& target, FlagInfo info);
  void add(std::string_view name, long& target, FlagInfo info);
  /// Adds a flag whose value is a finite number.
  void add(std::string_view name, double& target, FlagInfo info);
  /// Adds a list flag. Values that are given replace the whole default.
  void add(std::string_view name, std::vector<std::string>& target, FlagInfo info);
  /// Adds a flag whose value must be one of `choices`, compared exactly. The default need not be
  /// one of them.
  void add_enum(std::string_view name,
                std::string& target,
                std::vector<std::string> choices,
                FlagInfo info);
  /// Adds a list flag whose values must all be among `choices`.
  void add_enums(std::string_view name,
                 std::vector<std::string>& target,
                 std::vector<std::string> choices,
                 FlagInfo info);
  /// Adds a hidden second name for a flag that was added before. `env` is the environment variable
  /// that belongs to that name, if any; it takes precedence over the flag's own. A command line may
  /// have both names: then a boolean is true if one of them says so, a list has the values of both,
  /// and for other flags the alias decides.
  void alias(std::string_view alias, std::string_view name, std::string_view env = {});
  /// Whether there is a flag with this name or alias.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Allows positional arguments, which the usage line shows under this name. parse() replaces the
  /// content of `target`. Without this call, every positional argument is an error.
  void positionals(std::string_view name, std::vector<std::string>& target, std::string help);

  /// Parses the command line, with argv[0] being the program, and the environment into the targets.
  /// An error gives one line of text and exit status 1, and may leave some targets set. It takes
  /// precedence over --help and --version; of those, the first one on the command line counts.
  FlagOutcome parse(int argc, const char* const* argv);

  /// True when this flag was on the command line that parse() read last, under any of its names or
  /// in its --no- form.
  [[nodiscard]] bool given(std::string_view name) const;
  /// The name or alias under which the flag was given on the command line, the last one if there
  /// are several; empty if it was not given.
  [[nodiscard]] std::string spelling(std::string_view name) const;
  /// The names on the command line, as spelled there, without dashes and "no-", each once. They are
  /// in the order in which the flags were added.
  [[nodiscard]] std::vector<std::string> given_names() const;
  /// The current value of the flag with this name or alias, as text: one element for a scalar
  /// ("true" or "false" for a boolean), any number for a list, none if the flag is unknown.
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// Names of the flags that are not hidden, without dashes, in the order in which they were added.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  friend class CommandSet;
  friend struct CommandTexts;

  [[nodiscard]] HelpSource help_source() const;
  void insert(Flag flag);
  void add_standard_flags();
  [[nodiscard]] FlagOutcome usage_error(std::string_view message) const;

  std::string program_;
  std::string description_;
  std::vector<Flag> flags_;
  std::string positional_name_;
  std::string positional_help_;
  std::vector<std::string>* positionals_ = nullptr;  // null: positional arguments are not allowed
  bool ignored_ = false;  // target of the standard flags, whose values are not used
};

}  // namespace ceems::config
