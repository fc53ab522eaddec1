#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::config {

/// How a flag is described beside its name and target.
struct FlagInfo {
  std::string help;
  std::string env = {};          ///< variable that gives the default when set and non-empty
  std::string placeholder = {};  ///< shown as --name=PLACEHOLDER; empty: the default, or NAME
  bool hidden = false;           ///< not in --help
};

/// What parse() decided.
struct FlagOutcome {
  std::optional<int> exit;  ///< set: print `text` and leave with this status
  std::string text;         ///< for stdout when exit is 0, else for stderr
};

/// The command line of a program, with the grammar of the reference (spec exporter-node §2.1, §2.2)
/// on top of CLI11: --name=value and --name value, --no-name for booleans, repeated scalars
/// refused, environment defaults, @file arguments, --help, --version, hidden completion scripts.
/// Targets must outlive parse() and hold the default when they are added. Not thread-safe.
class FlagSet {
 public:
  FlagSet(std::string program, std::string description);
  ~FlagSet();
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

  void add(std::string_view name, bool& target, FlagInfo info);
  void add(std::string_view name, std::string& target, FlagInfo info);
  void add(std::string_view name, long& target, FlagInfo info);
  /// Repeatable; the vector's content is the default and is replaced as a whole.
  void add(std::string_view name, std::vector<std::string>& target, FlagInfo info);
  /// One of `choices`, matched exactly; the target may hold "" as default.
  void add_enum(std::string_view name,
                std::string& target,
                std::vector<std::string> choices,
                FlagInfo info);
  void add_enums(std::string_view name,
                 std::vector<std::string>& target,
                 std::vector<std::string> choices,
                 FlagInfo info);
  /// Another, hidden spelling of a flag that exists: harmless aliases (spec exporter-node §2.5).
  void alias(std::string_view alias, std::string_view name);
  /// A positional argument list with this name in the usage line; without a call none are allowed.
  void positionals(std::string_view name, std::vector<std::string>& target, std::string help);

  FlagOutcome parse(int argc, const char* const* argv);

  /// True when the flag (or its --no- form) stood on the command line; for defaults that depend on
  /// it.
  [[nodiscard]] bool given(std::string_view name) const;
  /// Values of a flag as text after parse(), defaults included: one for scalars ("true", "false"
  /// for booleans), any number for lists; none for a flag that is not known.
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// Names of the visible flags in order, without dashes; for tests of docs and completion.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::config
