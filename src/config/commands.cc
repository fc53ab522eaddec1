#include "config/commands.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/commands_text.h"
#include "config/flags_text.h"
#include "config/spelling.h"

namespace ceems::config {
namespace {

using Text = std::string (*)(const CommandSet&);

constexpr std::array<std::pair<std::string_view, Text>, 4> kTexts{{
    {"--help-man", CommandTexts::man_page},
    {"--completion-script-bash", CommandTexts::completion_bash},
    {"--completion-script-zsh", CommandTexts::completion_zsh},
    {"--completion-script-fish", CommandTexts::completion_fish},
}};

/// The text that one of these arguments asks for.
Text text_asked_for(std::span<const char* const> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--") {
      break;
    }
    const auto* const found =
        std::ranges::find(kTexts, argument, &std::pair<std::string_view, Text>::first);
    if (found != kTexts.end()) {
      return found->second;
    }
  }
  return nullptr;
}

bool begins_with(const std::vector<std::string>& words, const std::vector<std::string>& first) {
  return words.size() >= first.size() && std::equal(first.begin(), first.end(), words.begin());
}

}  // namespace

CommandSet::CommandSet(std::string program, std::string description)
    : program_(std::move(program)), description_(std::move(description)) {}

CommandSet::Command::Command(std::string_view program,
                             std::string_view name,
                             const std::string& sentence)
    : joined(name), help(sentence), flags(fmt::format("{} {}", program, name), sentence) {
  for (const std::string_view word : split(joined, ' ')) {
    words.emplace_back(word);
  }
}

FlagSet& CommandSet::add(std::string_view words, const std::string& help) {
  Command& added = commands_.emplace_back(program_, words, help);
  for (const Command& other : commands_) {
    CEEMS_CHECK(&other == &added ||
                (!begins_with(other.words, added.words) && !begins_with(added.words, other.words)));
  }
  return added.flags;
}

CommandSet::Command* CommandSet::find(const std::vector<std::string>& words) {
  const auto found = std::ranges::find(commands_, words, &Command::words);
  return found == commands_.end() ? nullptr : &*found;
}

std::vector<std::string> CommandSet::next_words(const std::vector<std::string>& words) const {
  std::vector<std::string> next;
  for (const Command& command : commands_) {
    if (command.words.size() > words.size() && begins_with(command.words, words) &&
        std::ranges::find(next, command.words[words.size()]) == next.end()) {
      next.push_back(command.words[words.size()]);
    }
  }
  return next;
}

CommandSet::Outcome CommandSet::error(const std::string& message) const {
  return {
      .flags = {.exit = 1, .text = fmt::format("{}: error: {}, try --help\n", program_, message)},
      .command = {}};
}

CommandSet::Outcome CommandSet::unknown(const std::vector<std::string>& words,
                                        std::string_view word) const {
  const auto next = next_words(words);
  const std::vector<std::string_view> known(next.begin(), next.end());
  std::string message = fmt::format("expected command but got '{}'", printable(word));
  if (const std::string_view near = nearest(word, known); !near.empty()) {
    message += fmt::format(" (did you mean '{}'?)", near);
  }
  return error(message);
}

CommandSet::Outcome CommandSet::help(const std::vector<std::string>& words, bool with_flags) {
  std::vector<std::string> read;
  for (const std::string& word : words) {
    const auto next = next_words(read);
    if (std::ranges::find(next, word) == next.end()) {
      return unknown(read, word);
    }
    read.push_back(word);
  }
  Command* command = find(read);
  if (command == nullptr) {
    return {.flags = {.exit = 0, .text = CommandTexts::help(*this, read, with_flags)},
            .command = {}};
  }
  const std::array<const char*, 2> line{program_.c_str(), "--help"};
  return {.flags = command->flags.parse(static_cast<int>(line.size()), line.data()), .command = {}};
}

CommandSet::Outcome CommandSet::parse(int argc, const char* const* argv) {
  std::span<const char* const> rest(argv, static_cast<std::size_t>(argc));
  rest = rest.subspan(rest.empty() ? 0 : 1);
  if (const Text text = text_asked_for(rest); text != nullptr) {
    return {.flags = {.exit = 0, .text = text(*this)}, .command = {}};
  }
  std::vector<std::string> words;
  while (!rest.empty()) {
    const std::string word = rest.front();
    if (word == "-h" || word == "--help" || word == "--no-help" || word == "--help-long") {
      return help(words, word == "--help-long");
    }
    if (word == "--version" || word == "--no-version") {
      return {.flags = {.exit = 0, .text = version_text(program_)}, .command = {}};
    }
    if (word.starts_with("-")) {
      return error(fmt::format("unknown flag '{}' before the command", printable(word)));
    }
    if (word == "help" && words.empty()) {
      return help({rest.begin() + 1, rest.end()}, false);
    }
    const auto next = next_words(words);
    if (std::ranges::find(next, word) == next.end()) {
      return unknown(words, word);
    }
    words.push_back(word);
    if (Command* command = find(words);
        command != nullptr) {  // its last word takes the place of the program's name
      return {.flags = command->flags.parse(static_cast<int>(rest.size()), rest.data()),
              .command = command->joined};
    }
    rest = rest.subspan(1);
  }
  const std::string of = words.empty() ? "" : fmt::format(" of '{}'", fmt::join(words, " "));
  return error(
      fmt::format("must select a subcommand{}: {}", of, fmt::join(next_words(words), ", ")));
}

}  // namespace ceems::config
