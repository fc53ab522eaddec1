#include "config/flags.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/arguments.h"
#include "config/flags_text.h"

namespace ceems::config {
namespace {

/// A flag that every program has.
struct StandardFlag {
  std::string_view name;
  std::string_view help;                   ///< empty: hidden
  std::string (*text)(const HelpSource&);  ///< returns what it prints; null: no effect
};

constexpr std::array<StandardFlag, 8> kStandardFlags{{
    {"help", "Show context-sensitive help.", help_text},
    {"help-long", "", help_text},
    {"help-man", "", man_page},
    {"version", "Show application version.",
     [](const HelpSource& source) { return version_text(program_name(source.program)); }},
    {"completion-script-bash", "", completion_bash},
    {"completion-script-zsh", "", completion_zsh},
    {"completion-script-fish", "", completion_fish},
    {"completion-bash", "", nullptr},
}};

std::vector<std::string> to_texts(bool value) {
  return {value ? "true" : "false"};
}
std::vector<std::string> to_texts(long value) {
  return {std::to_string(value)};
}
std::vector<std::string> to_texts(double value) {
  return {fmt::format("{}", value)};
}
std::vector<std::string> to_texts(const std::string& value) {
  return {value};
}
std::vector<std::string> to_texts(const std::vector<std::string>& values) {
  return values;
}

std::vector<std::string> target_texts(const Flag& flag) {
  return std::visit([](const auto* target) { return to_texts(*target); }, flag.target);
}

/// Parses a number as floating point and truncates it, as kingpin does ("1e2" is 100).
std::optional<long> parse_long(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  const auto value = parse_double(text);
  if (!value || !std::isfinite(*value) || std::fabs(*value) > 9e18) {
    return std::nullopt;
  }
  return static_cast<long>(*value);
}

/// Stores the values of one flag in its target. There must be at least one value.
Result<> store(const Flag& flag, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (!flag.choices.empty() && std::ranges::find(flag.choices, value) == flag.choices.end()) {
      return fail(ErrorCode::kInvalidArgument, "enum value of '--{}' must be one of {}, got '{}'",
                  flag.name, fmt::join(flag.choices, ","), printable(value));
    }
  }
  const std::string& value = values.back();
  if (auto* const* on = std::get_if<bool*>(&flag.target)) {
    **on = value == "true";
  } else if (auto* const* text = std::get_if<std::string*>(&flag.target)) {
    **text = value;
  } else if (auto* const* list = std::get_if<std::vector<std::string>*>(&flag.target)) {
    **list = values;
  } else if (auto* const* real = std::get_if<double*>(&flag.target)) {
    const auto number = parse_double(value);
    if (!number || !std::isfinite(*number)) {
      return fail(ErrorCode::kInvalidArgument, "expected a number for '--{}', got '{}'", flag.name,
                  printable(value));
    }
    **real = *number;
  } else {
    const auto number = parse_long(value);
    if (!number) {
      return fail(ErrorCode::kInvalidArgument, "expected a number for '--{}', got '{}'", flag.name,
                  printable(value));
    }
    *std::get<long*>(flag.target) = *number;
  }
  return {};
}

/// The name that was given twice; empty if none was.
std::string repeated_name(const Flag& flag) {
  std::vector<std::string> names = flag.spellings;
  std::ranges::sort(names);
  const auto found = std::ranges::adjacent_find(names);
  return found == names.end() ? std::string() : *found;
}

/// The values to store for a flag that is not a list and was given under several names: true if one
/// of them is true, otherwise the value that was given under an alias, because aliases are what an
/// operator adds for one release.
std::vector<std::string> joined(const Flag& flag) {
  if (flag.is_list() || flag.given.size() == 1) {
    return flag.given;
  }
  if (flag.is_bool()) {
    return {std::ranges::find(flag.given, "true") != flag.given.end() ? "true" : "false"};
  }
  const auto alias =
      std::ranges::find_if(flag.spellings, [&](const auto& name) { return name != flag.name; });
  return {flag.given.at(static_cast<std::size_t>(alias - flag.spellings.begin()))};
}

Result<> store_command_line(const std::vector<Flag>& flags) {
  for (const Flag& flag : flags) {
    if (const std::string name = repeated_name(flag); !name.empty() && !flag.is_list()) {
      return fail(ErrorCode::kInvalidArgument, "flag '{}' cannot be repeated", name);
    }
    if (flag.given.empty()) {
      continue;
    }
    CEEMS_TRY(store(flag, joined(flag)));
  }
  return {};
}

/// The name of the flag's environment variable that is set and not empty, if any. Variables of
/// aliases come first.
std::string set_variable(const Flag& flag) {
  std::vector<std::string> names = flag.alias_envs;
  names.push_back(flag.info.env);
  const auto found = std::ranges::find_if(names, [](const std::string& name) {
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    return value != nullptr && *value != '\0';
  });
  return found == names.end() ? std::string() : *found;
}

Result<> store_environment(const std::vector<Flag>& flags) {
  for (const Flag& flag : flags) {
    const std::string name = set_variable(flag);
    if (name.empty() || !flag.given.empty()) {
      continue;
    }
    const char* const value = std::getenv(name.c_str());
    const std::string text = value != nullptr ? value : "";
    if (flag.is_bool() && text != "true" && text != "false") {
      return fail(ErrorCode::kInvalidArgument, "expected true or false in ${}, got '{}'", name,
                  printable(text));
    }
    CEEMS_TRY_IN("$" + name, store(flag, {text}));
  }
  return {};
}

}  // namespace

FlagSet::FlagSet(std::string program, std::string description)
    : program_(std::move(program)), description_(std::move(description)) {}
FlagSet::~FlagSet() = default;

void FlagSet::insert(Flag flag) {
  CEEMS_CHECK(find_flag(flags_, flag.name) == nullptr);
  const std::vector<std::string> defaults = target_texts(flag);
  flag.default_text = defaults.empty() ? "" : defaults.front();
  flags_.push_back(std::move(flag));
}

void FlagSet::add(std::string_view name, bool& target, FlagInfo info) {
  insert({.name = std::string(name), .target = &target, .info = std::move(info)});
}
void FlagSet::add(std::string_view name, std::string& target, FlagInfo info) {
  insert({.name = std::string(name), .target = &target, .info = std::move(info)});
}
void FlagSet::add(std::string_view name, long& target, FlagInfo info) {
  insert({.name = std::string(name), .target = &target, .info = std::move(info)});
}
void FlagSet::add(std::string_view name, double& target, FlagInfo info) {
  insert({.name = std::string(name), .target = &target, .info = std::move(info)});
}
void FlagSet::add(std::string_view name, std::vector<std::string>& target, FlagInfo info) {
  insert({.name = std::string(name), .target = &target, .info = std::move(info)});
}
void FlagSet::add_enum(std::string_view name,
                       std::string& target,
                       std::vector<std::string> choices,
                       FlagInfo info) {
  add(name, target, std::move(info));
  flags_.back().choices = std::move(choices);
}
void FlagSet::add_enums(std::string_view name,
                        std::vector<std::string>& target,
                        std::vector<std::string> choices,
                        FlagInfo info) {
  add(name, target, std::move(info));
  flags_.back().choices = std::move(choices);
}

void FlagSet::alias(std::string_view alias, std::string_view name, std::string_view env) {
  Flag* flag = find_flag(flags_, name);
  CEEMS_CHECK(flag != nullptr && find_flag(flags_, alias) == nullptr);
  flag->aliases.emplace_back(alias);
  if (!env.empty()) {
    flag->alias_envs.emplace_back(env);
  }
}

void FlagSet::positionals(std::string_view name,
                          std::vector<std::string>& target,
                          std::string help) {
  positional_name_ = name;
  positional_help_ = std::move(help);
  positionals_ = &target;
}

void FlagSet::add_standard_flags() {
  for (const StandardFlag& standard : kStandardFlags) {
    if (find_flag(flags_, standard.name) == nullptr) {  // parse() may be called more than once
      add(standard.name, ignored_,
          {.help = std::string(standard.help),
           .hidden = standard.help.empty(),
           .letter = standard.name == "help" ? 'h' : '\0'});
    }
  }
}

FlagOutcome FlagSet::usage_error(std::string_view message) const {
  return {.exit = 1,
          .text = fmt::format("{}: error: {}, try --help\n", program_name(program_), message)};
}

HelpSource FlagSet::help_source() const {
  return {.program = program_,
          .description = description_,
          .positional = positional_name_,
          .positional_help = positional_help_,
          .flags = flags_};
}

FlagOutcome FlagSet::parse(int argc, const char* const* argv) {
  add_standard_flags();
  const std::span words(argv, static_cast<std::size_t>(argc));
  auto arguments =
      read_arguments(words.subspan(words.empty() ? 0 : 1), flags_, positionals_ != nullptr);
  if (!arguments) {
    return usage_error(arguments.error().message);
  }
  for (Flag& flag : flags_) {
    flag.given.clear();
    flag.spellings.clear();
  }
  for (const GivenFlag& given : arguments->flags) {
    given.flag->given.push_back(given.value);
    given.flag->spellings.push_back(given.name);
  }
  if (auto stored = store_command_line(flags_); !stored) {
    return usage_error(stored.error().message);
  }
  if (positionals_ != nullptr) {
    *positionals_ = std::move(arguments->positionals);
  }
  if (auto stored = store_environment(flags_); !stored) {
    return usage_error(stored.error().message);
  }

  const HelpSource source = help_source();
  for (const GivenFlag& given : arguments->flags) {
    const auto* const standard =
        std::ranges::find(kStandardFlags, given.flag->name, &StandardFlag::name);
    if (standard != kStandardFlags.end() && standard->text != nullptr) {
      return {.exit = 0, .text = standard->text(source)};
    }
  }
  return {};
}

bool FlagSet::has(std::string_view name) const {
  return find_flag(flags_, name) != nullptr;
}

bool FlagSet::given(std::string_view name) const {
  const Flag* flag = find_flag(flags_, name);
  return flag != nullptr && !flag->given.empty();
}

std::string FlagSet::spelling(std::string_view name) const {
  const Flag* flag = find_flag(flags_, name);
  return flag == nullptr || flag->spellings.empty() ? std::string() : flag->spellings.back();
}

std::vector<std::string> FlagSet::given_names() const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) {
    for (const std::string& name : flag.spellings) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

std::vector<std::string> FlagSet::values(std::string_view name) const {
  const Flag* flag = find_flag(flags_, name);
  return flag == nullptr ? std::vector<std::string>{} : target_texts(*flag);
}

std::vector<std::string> FlagSet::names() const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) {
    if (!flag.info.hidden) {
      names.push_back(flag.name);
    }
  }
  return names;
}

}  // namespace ceems::config
