#include "config/flags.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>

#include <CLI/CLI.hpp>

#include "base/check.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/flags_text.h"
#include "config/spelling.h"

namespace ceems::config {
namespace {

constexpr std::size_t kMaxArgumentFile = std::size_t{1} << 20U;
constexpr int kMaxArgumentFiles = 16;  // a file may name files, itself too

/// Arguments of a file's text, one a line; blank lines and lines that begin with '#' are skipped.
std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    line.remove_suffix(line.ends_with('\r') ? 1 : 0);
    if (!trim(line).empty() && !line.starts_with('#')) {
      lines.emplace_back(line);
    }
  }
  return lines;
}

Result<std::string> read_argument_file(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return fail(errno_error(EISDIR, "read " + printable(path)));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return fail(errno_error(errno != 0 ? errno : ENOENT, "open " + printable(path)));
  }
  std::string text(kMaxArgumentFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad()) {
    return fail(errno_error(EIO, "read " + printable(path)));
  }
  if (text.size() > kMaxArgumentFile || text.find('\0') != std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "{}: not a list of arguments", printable(path));
  }
  return text;
}

/// Whole numbers are read as floating point and truncated, as the reference does ("1e2" is 100).
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

}  // namespace

struct FlagSet::Impl {
  std::string program;
  std::string description;
  std::deque<FlagEntry> entries;  // stable addresses
  std::vector<std::pair<std::string, std::string>> aliases;
  std::string positional_name;
  std::string positional_help;
  std::vector<std::string>* positionals = nullptr;
  std::vector<std::string> seen;
  bool informing = false;  // target of --help and the like, which are looked for by name

  FlagEntry* find(std::string_view name) {
    for (const auto& [alias, target] : aliases) {
      if (alias == name) {
        name = target;
        break;
      }
    }
    for (FlagEntry& entry : entries) {
      if (entry.name == name) {
        return &entry;
      }
    }
    return nullptr;
  }

  FlagEntry& add(std::string_view name, FlagKind kind, FlagInfo info) {
    CEEMS_CHECK(find(name) == nullptr);
    FlagEntry& entry = entries.emplace_back();
    entry.name = name;
    entry.kind = kind;
    entry.info = std::move(info);
    return entry;
  }

  [[nodiscard]] FlagOutcome usage_error(std::string_view message) const {
    return {.exit = 1, .text = fmt::format("{}: error: {}, try --help\n", program, message)};
  }

  Result<std::vector<std::string>> normalise(int argc, const char* const* argv);
  Result<> split_long(const std::string& argument,
                      bool has_next,
                      std::string_view next,
                      std::vector<std::string>& out);
  Result<> store(FlagEntry& entry, const std::vector<std::string>& values);
  Result<> apply_environment();
  std::string unknown(std::string_view flag);
};

FlagSet::FlagSet(std::string program, std::string description) : impl_(std::make_unique<Impl>()) {
  impl_->program = std::move(program);
  impl_->description = std::move(description);
}
FlagSet::~FlagSet() = default;

void FlagSet::add(std::string_view name, bool& target, FlagInfo info) {
  FlagEntry& entry = impl_->add(name, FlagKind::kBool, std::move(info));
  entry.bool_target = &target;
}
void FlagSet::add(std::string_view name, std::string& target, FlagInfo info) {
  FlagEntry& entry = impl_->add(name, FlagKind::kString, std::move(info));
  entry.string_target = &target;
  entry.defaults = target.empty() ? std::vector<std::string>{} : std::vector{target};
}
void FlagSet::add(std::string_view name, long& target, FlagInfo info) {
  FlagEntry& entry = impl_->add(name, FlagKind::kInt, std::move(info));
  entry.int_target = &target;
  entry.defaults = {std::to_string(target)};
}
void FlagSet::add(std::string_view name, std::vector<std::string>& target, FlagInfo info) {
  FlagEntry& entry = impl_->add(name, FlagKind::kList, std::move(info));
  entry.list_target = &target;
  entry.defaults = target;
}
void FlagSet::add_enum(std::string_view name,
                       std::string& target,
                       std::vector<std::string> choices,
                       FlagInfo info) {
  add(name, target, std::move(info));
  impl_->entries.back().choices = std::move(choices);
}
void FlagSet::add_enums(std::string_view name,
                        std::vector<std::string>& target,
                        std::vector<std::string> choices,
                        FlagInfo info) {
  add(name, target, std::move(info));
  impl_->entries.back().choices = std::move(choices);
}
void FlagSet::alias(std::string_view alias, std::string_view name) {
  CEEMS_CHECK(impl_->find(name) != nullptr && impl_->find(alias) == nullptr);
  impl_->aliases.emplace_back(alias, name);
}
void FlagSet::positionals(std::string_view name,
                          std::vector<std::string>& target,
                          std::string help) {
  impl_->positional_name = name;
  impl_->positional_help = std::move(help);
  impl_->positionals = &target;
}

bool FlagSet::given(std::string_view name) const {
  return std::ranges::find(impl_->seen, name) != impl_->seen.end();
}

std::vector<std::string> FlagSet::values(std::string_view name) const {
  const FlagEntry* entry = impl_->find(name);
  if (entry == nullptr) {
    return {};
  }
  switch (entry->kind) {
    case FlagKind::kBool:
      return {*entry->bool_target ? "true" : "false"};
    case FlagKind::kString:
      return {*entry->string_target};
    case FlagKind::kInt:
      return {std::to_string(*entry->int_target)};
    case FlagKind::kList:
      return *entry->list_target;
  }
  return {};
}

std::vector<std::string> FlagSet::names() const {
  std::vector<std::string> names;
  for (const FlagEntry& entry : impl_->entries) {
    if (!entry.info.hidden) {
      names.push_back(entry.name);
    }
  }
  return names;
}

std::string FlagSet::Impl::unknown(std::string_view flag) {
  std::vector<std::string_view> known{"help", "version"};
  for (const FlagEntry& entry : entries) {
    known.push_back(entry.name);
  }
  const std::string_view near = nearest(flag, known);
  return near.empty() ? fmt::format("unknown long flag '--{}'", printable(flag))
                      : fmt::format("unknown long flag '--{}' (did you mean '--{}'?)",
                                    printable(flag), near);
}

/// Brings one long flag into the form that CLI11 reads without ambiguity: "--name" for booleans,
/// "--name" and "=value" for the others; the '=' keeps an empty value or one with a dash a value.
Result<> FlagSet::Impl::split_long(const std::string& argument,
                                   bool has_next,
                                   std::string_view next,
                                   std::vector<std::string>& out) {
  const std::size_t equals = argument.find('=');
  std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
  FlagEntry* entry = find(name);
  bool value = true;
  if (entry == nullptr && name.starts_with("no-")) {
    entry = find(name.substr(3));
    value = false;
    if (entry != nullptr && entry->kind != FlagKind::kBool) {
      entry = nullptr;
    }
  }
  if (entry == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "{}", unknown(name));
  }
  if (entry->kind == FlagKind::kBool) {
    if (equals != std::string::npos) {
      return fail(ErrorCode::kInvalidArgument,
                  "unexpected argument '{}' for boolean flag '--{}'; use --{} or --no-{}",
                  printable(argument.substr(equals)), name, entry->name, entry->name);
    }
    out.push_back((value ? "--" : "--no-") + entry->name);
    return {};
  }
  if (equals == std::string::npos && (!has_next || (next.size() > 1 && next.front() == '-'))) {
    return fail(ErrorCode::kInvalidArgument, "expected argument for flag '--{}'", name);
  }
  out.push_back("--" + entry->name);
  if (equals != std::string::npos) {
    out.push_back("=" + argument.substr(equals + 1));
  }
  return {};
}

Result<std::vector<std::string>> FlagSet::Impl::normalise(int argc, const char* const* argv) {
  std::deque<std::string> rest;
  for (int i = 1; i < argc; ++i) {
    rest.emplace_back(argv[i]);
  }
  std::vector<std::string> out;
  bool only_positionals = false;
  int files = 0;
  while (!rest.empty()) {
    const std::string argument = std::move(rest.front());
    rest.pop_front();
    const bool word = only_positionals || argument == "-" ||
                      !(argument.starts_with('-') || argument.starts_with('@'));
    if (word && positionals == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "unexpected argument '{}'", printable(argument));
    }
    if (word) {
      out.push_back("=" + argument);
    } else if (argument == "--") {
      only_positionals = true;
      out.push_back(argument);
    } else if (argument.starts_with("--")) {
      const bool has_next = !rest.empty();
      const std::size_t before = out.size();
      if (auto added = split_long(argument, has_next, has_next ? rest.front() : "", out); !added) {
        return fail(std::move(added).error());
      }
      const FlagEntry* entry = find(std::string_view(out[before]).substr(2));
      if (entry != nullptr && entry->kind != FlagKind::kBool && out.size() == before + 1) {
        out.push_back("=" + rest.front());
        rest.pop_front();
      }
    } else if (argument == "-h") {
      out.emplace_back("--help");
    } else if (argument.starts_with('-')) {
      return fail(ErrorCode::kInvalidArgument, "unknown short flag '{}'", printable(argument));
    } else {
      if (++files > kMaxArgumentFiles) {
        return fail(ErrorCode::kInvalidArgument, "more than {} argument files", kMaxArgumentFiles);
      }
      const auto text = read_argument_file(argument.substr(1));
      if (!text) {
        return fail(text.error());
      }
      const auto lines = split_arguments(*text);
      rest.insert(rest.begin(), lines.begin(), lines.end());
    }
  }
  return out;
}

Result<> FlagSet::Impl::store(FlagEntry& entry, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (!entry.choices.empty() && std::ranges::find(entry.choices, value) == entry.choices.end()) {
      return fail(ErrorCode::kInvalidArgument, "enum value of '--{}' must be one of {}, got '{}'",
                  entry.name, fmt::join(entry.choices, ","), printable(value));
    }
  }
  switch (entry.kind) {
    case FlagKind::kBool:
      *entry.bool_target = values.back() == "true";
      break;
    case FlagKind::kString:
      *entry.string_target = values.back();
      break;
    case FlagKind::kInt: {
      const auto number = parse_long(values.back());
      if (!number) {
        return fail(ErrorCode::kInvalidArgument, "expected a number for '--{}', got '{}'",
                    entry.name, printable(values.back()));
      }
      *entry.int_target = *number;
      break;
    }
    case FlagKind::kList:
      *entry.list_target = values;
      break;
  }
  return {};
}

Result<> FlagSet::Impl::apply_environment() {
  for (FlagEntry& entry : entries) {
    if (entry.info.env.empty() || std::ranges::find(seen, entry.name) != seen.end()) {
      continue;
    }
    const char* value = std::getenv(entry.info.env.c_str());
    if (value == nullptr || *value == '\0') {
      continue;
    }
    std::string text = value;
    if (entry.kind == FlagKind::kBool && text != "true" && text != "false") {
      return fail(ErrorCode::kInvalidArgument, "expected true or false in ${}, got '{}'",
                  entry.info.env, printable(text));
    }
    if (auto stored = store(entry, {std::move(text)}); !stored) {
      return fail(std::move(stored).error().with_context("$" + entry.info.env));
    }
  }
  return {};
}

FlagOutcome FlagSet::parse(int argc, const char* const* argv) {
  std::vector<std::string> informing;  // flags that print something and end, in the order met
  static constexpr std::array<std::string_view, 7> kInforming{"help",
                                                              "help-long",
                                                              "help-man",
                                                              "version",
                                                              "completion-script-bash",
                                                              "completion-script-zsh",
                                                              "completion-bash"};
  for (const std::string_view name : kInforming) {
    if (impl_->find(name) == nullptr) {
      const bool shown = name == "help" || name == "version";
      add(name, impl_->informing,
          {.help = name == "help" ? "Show context-sensitive help." : "Show application version.",
           .hidden = !shown});
    }
  }
  auto arguments = impl_->normalise(argc, argv);
  if (!arguments) {
    return impl_->usage_error(arguments.error().message);
  }
  for (const std::string& argument : *arguments) {
    if (argument.starts_with("--")) {
      std::string_view name = std::string_view(argument).substr(2);
      name.remove_prefix(name.starts_with("no-") ? 3 : 0);
      if (std::ranges::find(kInforming, name) != kInforming.end()) {
        informing.emplace_back(name);
      }
    }
  }

  CLI::App app;
  app.set_help_flag();
  std::vector<CLI::Option*> options;
  for (const FlagEntry& entry : impl_->entries) {
    options.push_back(entry.kind == FlagKind::kBool
                          ? app.add_flag(fmt::format("--{0},!--no-{0}", entry.name))
                          : app.add_option("--" + entry.name)
                                ->allow_extra_args(false)
                                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
  }
  app.allow_extras(impl_->positionals != nullptr);
  try {
    std::vector<std::string> reversed(arguments->rbegin(), arguments->rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return impl_->usage_error(error.what());
  }

  impl_->seen.clear();
  std::size_t index = 0;
  for (FlagEntry& entry : impl_->entries) {
    CLI::Option* option = options[index++];
    std::vector<std::string> values = option->results();
    if (values.empty()) {
      continue;
    }
    if (values.size() > 1 && entry.kind != FlagKind::kList) {
      return impl_->usage_error(fmt::format("flag '{}' cannot be repeated", entry.name));
    }
    for (std::string& value : values) {
      value.erase(0, value.starts_with("=") ? 1 : 0);
    }
    impl_->seen.push_back(entry.name);
    if (auto stored = impl_->store(entry, values); !stored) {
      return impl_->usage_error(stored.error().message);
    }
  }
  if (impl_->positionals != nullptr) {
    impl_->positionals->clear();
    for (std::string value : app.remaining()) {
      if (value != "--") {
        value.erase(0, value.starts_with("=") ? 1 : 0);
        impl_->positionals->push_back(std::move(value));
      }
    }
  }
  if (auto applied = impl_->apply_environment(); !applied) {
    return impl_->usage_error(applied.error().message);
  }

  const HelpSource source{.program = impl_->program,
                          .description = impl_->description,
                          .positional = impl_->positional_name,
                          .positional_help = impl_->positional_help,
                          .entries = impl_->entries};
  for (const std::string& name : informing) {
    if (name == "help" || name == "help-long") {
      return {.exit = 0, .text = help_text(source, help_width())};
    }
    if (name == "help-man") {
      return {.exit = 0, .text = man_page(source)};
    }
    if (name == "version") {
      return {.exit = 0, .text = version_text(impl_->program)};
    }
    if (name == "completion-script-bash") {
      return {.exit = 0, .text = completion_bash(source)};
    }
    if (name == "completion-script-zsh") {
      return {.exit = 0, .text = completion_zsh(source)};
    }
  }
  return {};
}

}  // namespace ceems::config
