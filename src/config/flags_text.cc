#include "config/flags_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/version.h"

namespace ceems::config {
namespace {

constexpr std::size_t kMaxLeft = 29;  // longer flags get their help on the next line

/// The left column of the help: "--[no-]name", "--name=VALUE" or "--name=VALUE ...".
std::string synopsis(const Flag& flag) {
  const std::string letter = flag.info.letter == '\0' ? "" : fmt::format("-{}, ", flag.info.letter);
  if (flag.is_bool()) {
    return letter + "--[no-]" + flag.name;
  }
  std::string value = flag.info.placeholder;
  if (value.empty() && !flag.default_text.empty()) {
    const bool number =
        std::holds_alternative<long*>(flag.target) || std::holds_alternative<double*>(flag.target);
    value = number ? flag.default_text : "\"" + flag.default_text + "\"";
  }
  if (value.empty()) {
    value = flag.name;
    std::ranges::transform(value, value.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
  }
  return fmt::format("{}--{}={}{}", letter, flag.name, value, flag.is_list() ? " ..." : "");
}

std::string explanation(const Flag& flag) {
  return flag.info.env.empty() ? flag.info.help
                               : fmt::format("{} (${})", flag.info.help, flag.info.env);
}

struct Row {
  std::string left;
  std::string right;
};

std::vector<Row> rows_of(std::span<const Flag* const> flags) {
  std::vector<Row> rows;
  for (const Flag* flag : flags) {
    rows.push_back({.left = synopsis(*flag), .right = explanation(*flag)});
  }
  return rows;
}

std::size_t left_width(std::span<const Row> rows) {
  std::size_t left = 0;
  for (const Row& row : rows) {
    left = row.left.size() <= kMaxLeft ? std::max(left, row.left.size()) : left;
  }
  return left;
}

/// The second column begins `left` and four blanks behind the margin.
std::string two_columns(std::span<const Row> rows,
                        std::size_t left,
                        std::size_t width,
                        std::size_t margin) {
  const std::size_t indent = margin + left + 4;
  const std::size_t right = width > indent + 20 ? width - indent : 20;
  std::string out;
  for (const Row& row : rows) {
    out.append(margin, ' ').append(row.left);
    bool first = row.left.size() <= left;
    if (!first) {
      out += "\n";
    }
    for (const std::string& line : wrap(row.right, right)) {
      out.append(first ? indent - margin - row.left.size() : indent, ' ').append(line) += '\n';
      first = false;
    }
  }
  return out;
}

}  // namespace

std::string_view program_name(std::string_view program) {
  return program.substr(0, program.find(' '));
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (true) {
    const std::string_view word = take_word(text);
    if (word.empty()) {
      break;
    }
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(std::exchange(line, {}));
    }
    line.append(line.empty() ? "" : " ").append(word);
  }
  if (!line.empty() || lines.empty()) {
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<const Flag*> visible(const HelpSource& source) {
  std::vector<const Flag*> flags;
  for (const bool help : {true, false}) {
    for (const Flag& flag : source.flags) {
      if (!flag.info.hidden && (flag.name == "help") == help) {
        flags.push_back(&flag);
      }
    }
  }
  return flags;
}

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string identifier(std::string_view program) {
  std::string name(program);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::size_t help_width() {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    if (const auto width = parse_int<std::size_t>(columns); width && *width >= 40) {
      return std::min<std::size_t>(*width, 400);
    }
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
    return size.ws_col;
  }
  return 80;
}

std::string help_text(const HelpSource& source) {
  const std::size_t width = help_width();
  std::string out = fmt::format("usage: {} [<flags>]", source.program);
  if (!source.positional.empty()) {
    out += fmt::format(" [<{}>...]", source.positional);
  }
  out += "\n\n";
  for (const std::string& line : wrap(source.description, width)) {
    out += line + "\n";
  }
  const auto flags = visible(source);
  out += "\n\nFlags:\n" + flag_rows(flags, width, 2);
  if (!source.positional.empty()) {
    const Row positional{.left = fmt::format("[<{}>]", source.positional),
                         .right = std::string(source.positional_help)};
    out += "\nArgs:\n" + two_columns({&positional, 1}, left_width(rows_of(flags)), width, 2);
  }
  return out;
}

std::string flag_rows(std::span<const Flag* const> flags, std::size_t width, std::size_t margin) {
  const auto rows = rows_of(flags);
  return two_columns(rows, left_width(rows), width, margin);
}

std::string man_page(const HelpSource& source) {
  std::string out = fmt::format(
      ".TH {} 8 \"\" \"{}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n[<flags>]\n.SH "
      "DESCRIPTION\n{}\n.SH OPTIONS\n",
      source.program, version().version, roff(source.program), roff(source.description),
      roff(source.program), roff(source.description));
  for (const Flag* flag : visible(source)) {
    out += man_entry(*flag);
  }
  return out;
}

std::string man_entry(const Flag& flag) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(synopsis(flag)), roff(explanation(flag)));
}

std::string flag_words(const HelpSource& source) {
  std::string words;
  for (const Flag* flag : visible(source)) {
    words += fmt::format(" --{}", flag->name);
    if (flag->is_bool()) {
      words += fmt::format(" --no-{}", flag->name);
    }
  }
  return words;
}

std::string completion_bash(const HelpSource& source) {
  return fmt::format(
      "_{0}() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
      "  if [[ \"$word\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"{1}\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}}\n"
      "complete -F _{0} {2}\n",
      identifier(source.program), trim(flag_words(source)), source.program);
}

std::string zsh_arguments(const HelpSource& source) {
  std::string out;
  for (const Flag* flag : visible(source)) {
    std::string help;
    for (const char c : flag->info.help) {
      if (c != '[' && c != ']' && c != ':' && c != '\'' && c != '\\') {
        help += c;
      }
    }
    if (flag->is_bool()) {
      out += fmt::format("  '(--no-{0})--{0}[{1}]' \\\n  '(--{0})--no-{0}[{1}]' \\\n", flag->name,
                         help);
      continue;
    }
    const std::string values =
        flag->choices.empty() ? "_files" : fmt::format("({})", fmt::join(flag->choices, " "));
    out += fmt::format("  '{}--{}=[{}]:value:{}' \\\n", flag->is_list() ? "*" : "", flag->name,
                       help, values);
  }
  return out + "  '*:file:_files'\n";
}

std::string completion_zsh(const HelpSource& source) {
  return zsh_script(source.program, "_arguments -s \\\n" + zsh_arguments(source));
}

std::string zsh_script(std::string_view program, std::string_view body) {
  // As a file of $fpath it is the body of a function of this name; otherwise, as with eval, it
  // only announces the function.
  return fmt::format(
      "#compdef {0}\n"
      "_{1}() {{\n{2}}}\n"
      "if [[ \"${{funcstack[1]}}\" == _{1} ]]; then _{1} \"$@\"; else compdef _{1} {0}; fi\n",
      program_name(program), identifier(program), body);
}

std::string fish_quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "'";
}

std::string fish_flags(const HelpSource& source, std::string_view condition) {
  std::string out;
  for (const Flag* flag : visible(source)) {
    const std::string start =
        fmt::format("complete -c {} {}-l ", program_name(source.program), condition);
    const std::string help = fish_quote(flag->info.help);
    if (flag->is_bool()) {
      out += fmt::format("{0}{1} -d {2}\n{0}no-{1} -d {2}\n", start, flag->name, help);
    } else if (flag->choices.empty()) {
      out += fmt::format("{}{} -r -d {}\n", start, flag->name, help);
    } else {
      out += fmt::format("{}{} -x -a '{}' -d {}\n", start, flag->name,
                         fmt::join(flag->choices, " "), help);
    }
  }
  return out;
}

std::string completion_fish(const HelpSource& source) {
  return fish_flags(source, "");
}

}  // namespace ceems::config
