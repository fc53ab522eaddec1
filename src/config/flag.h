#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/flags.h"

namespace ceems::config {

// Used only by the implementation of FlagSet.

/// One flag of a program.
struct Flag {
  /// The program's variable; never null.
  using Target = std::variant<bool*, long*, double*, std::string*, std::vector<std::string>*>;

  std::string name;  ///< without dashes
  Target target;
  FlagInfo info;
  std::vector<std::string> choices = {};     ///< allowed values; empty: any
  std::string default_text = {};             ///< shown in the help; for a list, its first value
  std::vector<std::string> aliases = {};     ///< other names, without dashes
  std::vector<std::string> given = {};       ///< values on the command line, in order
  std::vector<std::string> spellings = {};   ///< the name under which each of them was given
  std::vector<std::string> alias_envs = {};  ///< environment variables of the aliases

  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool*>(target); }
  [[nodiscard]] bool is_list() const {
    return std::holds_alternative<std::vector<std::string>*>(target);
  }
  [[nodiscard]] bool is_named(std::string_view word) const {
    return word == name || std::ranges::find(aliases, word) != aliases.end();
  }
};

/// The flag with this name or alias, or null. `flags` is a vector or span of Flag.
auto* find_flag(auto& flags, std::string_view name) {
  const auto found =
      std::ranges::find_if(flags, [&](const Flag& flag) { return flag.is_named(name); });
  return found == flags.end() ? nullptr : &*found;
}

}  // namespace ceems::config
