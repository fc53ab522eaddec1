#include "config/commands_text.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "base/version.h"
#include "config/flags_text.h"

namespace ceems::config {
namespace {

constexpr std::string_view kIndent = "      ";

std::string lines(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out;
  for (const std::string& line : wrap(text, width - indent.size())) {
    out += fmt::format("{}{}\n", indent, line);
  }
  return out;
}

bool has_prefix(const std::vector<std::string>& words, const std::vector<std::string>& first) {
  return words.size() >= first.size() && std::equal(first.begin(), first.end(), words.begin());
}

/// All but --help and --version, which every command has.
std::vector<const Flag*> flags_of_command(const HelpSource& source) {
  std::vector<const Flag*> flags = visible(source);
  std::erase_if(flags,
                [](const Flag* flag) { return flag->name == "help" || flag->name == "version"; });
  return flags;
}

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '[' && c != ']' && c != ':' && c != '\'' && c != '\\') {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string CommandTexts::help(const CommandSet& set,
                               const std::vector<std::string>& words,
                               bool with_flags) {
  const std::size_t width = help_width();
  std::string program = set.program_;
  for (const std::string& word : words) {
    program += " " + word;
  }
  std::string out = fmt::format("usage: {} <command> [<flags>]\n\n", program);
  out += lines(set.description_, width, "");
  out += "\n\nCommands:\n";
  if (words.empty()) {
    out += "  help [<command>...]\n" + lines("Show the flags of a command.", width, kIndent) + "\n";
  }
  for (const CommandSet::Command& command : set.commands_) {
    if (has_prefix(command.words, words)) {
      const HelpSource source = command.flags.help_source();
      const std::string positional =
          source.positional.empty() ? "" : fmt::format(" <{}>...", source.positional);
      out += fmt::format("  {} [<flags>]{}\n{}\n", command.joined, positional,
                         lines(command.help, width, kIndent));
      if (with_flags) {
        out += flag_rows(flags_of_command(source), width, kIndent.size() + 2) + "\n";
      }
    }
  }
  out +=
      "Flags:\n"
      "  -h, --[no-]help     Show context-sensitive help (also of a command).\n"
      "      --[no-]version  Show application version.\n";
  return out;
}

std::string CommandTexts::man_page(const CommandSet& set) {
  std::string out = fmt::format(
      ".TH {0} 8 \"\" \"{1}\"\n.SH NAME\n{2} \\- {3}\n.SH SYNOPSIS\n.B {2}\n<command> "
      "[<flags>]\n.SH DESCRIPTION\n{3}\n.SH COMMANDS\n",
      set.program_, version().version, roff(set.program_), roff(set.description_));
  for (const CommandSet::Command& command : set.commands_) {
    const HelpSource source = command.flags.help_source();
    const std::string positional =
        source.positional.empty() ? "" : fmt::format(" [<{}>...]", source.positional);
    out += fmt::format(".SS {} [<flags>]{}\n{}\n", roff(command.joined), positional,
                       roff(command.help));
    for (const Flag* flag : visible(source)) {
      out += man_entry(*flag);
    }
  }
  return out;
}

std::string CommandTexts::completion_bash(const CommandSet& set) {
  // From the words that were read to those that may follow.
  std::vector<std::pair<std::string, std::string>> next;
  const auto add = [&](const std::vector<std::string>& words) {
    const std::string key = fmt::format("{}", fmt::join(words, " "));
    if (std::ranges::find(next, key, &std::pair<std::string, std::string>::first) == next.end()) {
      next.emplace_back(key, fmt::format("{}", fmt::join(set.next_words(words), " ")));
    }
  };
  add({});
  for (const CommandSet::Command& command : set.commands_) {
    for (std::size_t size = 1; size < command.words.size(); ++size) {
      add({command.words.begin(), command.words.begin() + static_cast<std::ptrdiff_t>(size)});
    }
  }
  std::string cases;
  for (const auto& [words, following] : next) {
    cases += fmt::format("    \"{}\") next=\"{}\" ;;\n", words, following);
  }
  for (const CommandSet::Command& command : set.commands_) {
    cases += fmt::format("    \"{}\") flags=\"--help{}\" ;;\n", command.joined,
                         flag_words(command.flags.help_source()));
  }
  return fmt::format(
      "_{0}() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" command=\"\" next=\"\" flags=\"\" i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    [[ \"${{COMP_WORDS[i]}}\" == -* ]] && break\n"
      "    command=\"${{command:+$command }}${{COMP_WORDS[i]}}\"\n"
      "  done\n"
      "  case \"$command\" in\n"
      "{1}"
      "  esac\n"
      "  if [[ -n \"$next\" ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$next --help --version\" -- \"$word\"))\n"
      "  elif [[ \"$word\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}}\n"
      "complete -F _{0} {2}\n",
      identifier(set.program_), cases, set.program_);
}

std::string CommandTexts::completion_zsh(const CommandSet& set) {
  std::string cases;
  for (const CommandSet::Command& command : set.commands_) {
    cases += fmt::format(
        "  '{}')\n    shift {} words\n    (( CURRENT -= {} ))\n    _arguments -s \\\n{}    ;;\n",
        command.joined, command.words.size(), command.words.size(),
        zsh_arguments(command.flags.help_source()));
  }
  std::string choices;
  for (const CommandSet::Command& command : set.commands_) {
    choices += fmt::format("    '{}:{}'\n", command.joined, plain(command.help));
  }
  return zsh_script(
      set.program_,
      fmt::format("local -a commands following\n"
                  "local command=\"\" i entry\n"
                  "commands=(\n{}  )\n"
                  "for ((i = 2; i < CURRENT; i++)); do\n"
                  "  [[ \"${{words[i]}}\" == -* ]] && break\n"
                  "  command=\"${{command:+$command }}${{words[i]}}\"\n"
                  "done\n"
                  "case \"$command\" in\n"
                  "{}"
                  "  *)\n"
                  "    for entry in $commands; do\n"
                  "      entry=${{entry%%:*}}\n"
                  "      [[ -z \"$command\" || \"$entry\" == \"$command \"* ]] || continue\n"
                  "      entry=${{entry#\"$command\"}}\n"
                  "      following+=(${{${{entry# }}%% *}})\n"
                  "    done\n"
                  "    compadd -- ${{(u)following}} --help --version\n"
                  "    ;;\n"
                  "esac\n",
                  choices, cases));
}

std::string CommandTexts::completion_fish(const CommandSet& set) {
  // A function says whether exactly these words stand on the command line before the first flag.
  std::string out = fmt::format(
      "function __{0}_at\n"
      "  set -l words\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    string match -q -- '-*' $word; and break\n"
      "    set -a words $word\n"
      "  end\n"
      "  test \"$words\" = \"$argv\"\n"
      "end\n"
      "complete -c {1} -l help -d 'Show help.'\n"
      "complete -c {1} -n '__{0}_at' -l version -d 'Show application version.'\n",
      identifier(set.program_), set.program_);
  std::vector<std::vector<std::string>> seen;
  for (const CommandSet::Command& command : set.commands_) {
    for (std::size_t size = 1; size <= command.words.size(); ++size) {
      const std::vector<std::string> words(
          command.words.begin(), command.words.begin() + static_cast<std::ptrdiff_t>(size));
      if (std::ranges::find(seen, words) != seen.end()) {
        continue;
      }
      seen.push_back(words);
      std::string condition = fmt::format("__{}_at", identifier(set.program_));
      for (std::size_t i = 0; i + 1 < size; ++i) {
        condition += " " + words[i];
      }
      const std::string help =
          size == command.words.size() ? " -d " + fish_quote(command.help) : std::string();
      out += fmt::format("complete -c {} -n '{}' -f -a {}{}\n", set.program_, condition,
                         words.back(), help);
    }
    out += fish_flags(command.flags.help_source(),
                      fmt::format("-n '__{}_at {}' ", identifier(set.program_), command.joined));
  }
  return out;
}

}  // namespace ceems::config
