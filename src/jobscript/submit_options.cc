#include "jobscript/submit_options.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/strings.h"

namespace ceems::jobscript {
namespace {

/// The short options of sbatch, srun and salloc that matter here, with their long names.
constexpr std::array<std::pair<char, std::string_view>, 7> kShort{{{'n', "ntasks"},
                                                                   {'c', "cpus-per-task"},
                                                                   {'N', "nodes"},
                                                                   {'G', "gpus"},
                                                                   {'w', "nodelist"},
                                                                   {'B', "extra-node-info"},
                                                                   {'F', "nodefile"}}};
/// Other short options that take a value.
constexpr std::string_view kShortWithValue = "aAbCdDeiJLmMopqSrtTx";
/// Long options without a value, or with one after "=" only. All others take the next word.
constexpr std::array<std::string_view, 38> kFlags{
    "contiguous",    "disable-status", "exact",        "exclusive",     "get-user-env",
    "help",          "bell",           "no-bell",      "no-shell",      "kill-on-bad-exit",
    "wait",          "hold",           "ignore-pbs",   "label",         "multi-prog",
    "nice",          "no-kill",        "no-requeue",   "overcommit",    "overlap",
    "oversubscribe", "parsable",       "preserve-env", "propagate",     "pty",
    "quiet",         "reboot",         "requeue",      "share",         "spread-job",
    "test-only",     "unbuffered",     "usage",        "use-min-nodes", "verbose",
    "version",       "whole",          "x11"};
/// The options that are looked at.
constexpr std::array<std::string_view, 32> kKnown{"cores-per-socket",
                                                  "cpus-per-gpu",
                                                  "cpus-per-task",
                                                  "exclusive",
                                                  "extra-node-info",
                                                  "gpus",
                                                  "gpus-per-node",
                                                  "gpus-per-socket",
                                                  "gpus-per-task",
                                                  "gres",
                                                  "mem",
                                                  "mem-per-cpu",
                                                  "mem-per-gpu",
                                                  "mincpus",
                                                  "nodefile",
                                                  "nodelist",
                                                  "nodes",
                                                  "ntasks",
                                                  "ntasks-per-core",
                                                  "ntasks-per-gpu",
                                                  "ntasks-per-node",
                                                  "ntasks-per-socket",
                                                  "pty",
                                                  "sockets-per-node",
                                                  "tasks-per-node",
                                                  "time",
                                                  "time-min",
                                                  "tres-per-job",
                                                  "tres-per-node",
                                                  "tres-per-socket",
                                                  "tres-per-task",
                                                  "wrap"};

/// Options of which a script's directives keep no value: names of hosts and files.
constexpr std::array<std::string_view, 3> kWithoutValue{"exclusive", "nodefile", "nodelist"};

/// The long option that a word begins, which may be shortened as getopt_long(3) allows.
std::string_view whole_name(std::string_view word) {
  if (std::ranges::find(kKnown, word) != kKnown.end() ||
      std::ranges::find(kFlags, word) != kFlags.end()) {
    return word;
  }
  std::string_view found;
  for (const std::string_view name : kKnown) {
    if (name.starts_with(word)) {
      if (!found.empty()) {
        return word;
      }
      found = name;
    }
  }
  return found.empty() ? word : found;
}

std::string_view long_name(std::string_view word) {
  const std::string_view name = whole_name(word);
  return name == "tasks-per-node" ? "ntasks-per-node" : name;
}

std::string_view long_of(char letter) {
  const auto* const found =
      std::ranges::find(kShort, letter, &std::pair<char, std::string_view>::first);
  return found == kShort.end() ? std::string_view() : found->second;
}

/// Reads options up to a word that is none, and returns that; "" at the end, "--wrap" for that.
/// `next` returns one word after the other, "" after the last.
template <typename NextWord>
std::string_view read_words(NextWord next, SubmitOptions& options) {
  while (true) {
    std::string_view word = next();
    if (!word.starts_with('-') || word == "-" || word == "--") {
      return word;
    }
    if (word.starts_with("--")) {
      const std::string_view option = word.substr(2);
      const std::size_t equals = option.find('=');
      const std::string_view name = long_name(option.substr(0, equals));
      if (name == "wrap") {
        return "--wrap";
      }
      std::string_view value;
      if (equals != std::string_view::npos) {
        value = option.substr(equals + 1);
      } else if (std::ranges::find(kFlags, name) == kFlags.end()) {
        value = next();
      }
      options.set(name, value);
      continue;
    }
    word.remove_prefix(1);
    while (!word.empty()) {
      const std::string_view letter = word.substr(0, 1);
      word.remove_prefix(1);
      const std::string_view name = long_of(letter.front());
      if (!name.empty() || kShortWithValue.find(letter) != std::string_view::npos) {
        options.set(name.empty() ? letter : name, word.empty() ? next() : word);
        break;
      }
    }
  }
}

constexpr std::string_view kBlanks = " \t\n\v\f\r";

}  // namespace

bool is_plain_value(std::string_view value) {
  constexpr std::size_t kMaxValue = 64;
  return value.size() <= kMaxValue && has_only_words(value, "-._:,=*+");
}

bool asks_for_resources(std::string_view name) {
  return std::ranges::find(kKnown, name) != kKnown.end();
}

std::optional<std::string> take_directive_word(std::string_view& rest, bool comments, bool& open) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  if (rest.empty() || (comments && rest.front() == '#')) {
    return std::nullopt;
  }
  std::string word;
  char quote = 0;
  std::size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (quote == 0 && (kBlanks.find(c) != std::string_view::npos || (comments && c == '#'))) {
      break;
    }
    if (c == '\\' && quote != '\'' && at + 1 < rest.size()) {
      word += rest[++at];
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      word += c;
    }
  }
  rest.remove_prefix(at);
  open = open || quote != 0;
  return word;
}

SubmitOptions read_submit_words(std::span<const std::string> words, std::size_t& script) {
  SubmitOptions options;
  std::size_t at = 0;
  const std::string_view last = read_words(
      [words, &at] {
        return at < words.size() ? std::string_view(words[at++]) : std::string_view();
      },
      options);
  script = last.empty() || last == "--wrap" ? words.size() : last == "--" ? at : at - 1;
  if (last == "--wrap") {
    options.set("wrap", "");
  }
  return options;
}

std::optional<std::string_view> SubmitOptions::value(std::string_view name) const {
  const auto found = std::ranges::find(all, name, &std::pair<std::string, std::string>::first);
  return found == all.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

void SubmitOptions::set(std::string_view name, std::string_view text) {
  std::erase_if(all, [name](const auto& option) { return option.first == name; });
  all.emplace(name, text);
}

SubmitOptions read_submit_options(std::string_view line, std::string_view directives) {
  SubmitOptions options;
  const std::string_view first = take_word(line);
  options.program = first.substr(first.rfind('/') + 1);
  const std::string_view last = read_words([&line] { return take_word(line); }, options);
  options.ended = !last.empty() && last != ":";
  if (last == "--wrap") {  // the rest is its text
    return options;
  }
  options.several =
      last == ":" ||
      (options.ended && (line.starts_with(": ") || line.find(" : ") != std::string_view::npos));
  options.script = options.program == "sbatch";  // without a name it reads one from its input
  if (options.script && !directives.empty()) {
    SubmitOptions of_script;
    const std::string_view end =
        read_words([&directives] { return take_word(directives); }, of_script);
    for (const auto& [name, text] : of_script.all) {
      if (!options.has(name)) {
        options.set(name, text);
      }
    }
    options.script = false;
    options.several = options.several || end == ":";
  }
  return options;
}

void ScriptDirectives::add_line(std::string_view line) {
  if (done_) {
    return;
  }
  if (std::exchange(first_, false) && !line.starts_with("#!")) {
    certain_ = false;  // as sbatch refuses it
    done_ = true;
    return;
  }
  for (const std::string_view magic : {"#SBATCH", "#SLURM"}) {
    if (line.starts_with(magic)) {
      add_words(line.substr(magic.size()));
      return;
    }
  }
  if (line.starts_with("#PBS") || line.starts_with("#BSUB")) {
    certain_ = false;
    done_ = true;
    return;
  }
  const std::size_t text = line.find_first_not_of(" \t\n\v\f\r");
  done_ = text != std::string_view::npos && line[text] != '#';
}

void ScriptDirectives::add_words(std::string_view rest) {
  constexpr std::size_t kMaxDirectiveBytes = std::size_t{16} << 10U;
  bytes_ += rest.size();
  if (bytes_ > kMaxDirectiveBytes) {
    certain_ = false;
    done_ = true;
    return;
  }
  bool first_word = true;
  bool open = false;
  while (auto word = take_directive_word(rest, true, open)) {
    certain_ = certain_ && !open;
    if (std::exchange(first_word, false) && (*word == "hetjob" || *word == "packjob")) {
      several_ = true;
      done_ = true;
      return;
    }
    words_.push_back(*std::move(word));
  }
}

std::string_view ScriptDirectives::read(SubmitOptions& options, bool& all) const {
  auto word = words_.begin();
  const std::string_view last = read_words(
      [this, &word] { return word == words_.end() ? std::string_view() : *word++; }, options);
  all = word == words_.end();
  return last;
}

SubmitOptions ScriptDirectives::options() const {
  SubmitOptions options;
  bool all = false;
  static_cast<void>(read(options, all));
  options.several = several_;
  return options;
}

std::optional<std::string> ScriptDirectives::text() const {
  if (several_) {
    return ":";
  }
  SubmitOptions options;
  bool all = false;
  const std::string_view last = read(options, all);
  if (first_ || !certain_ || !last.empty() || !all) {
    return std::nullopt;
  }
  std::string text;
  for (const auto& [name, value] : options.all) {
    if (!asks_for_resources(name)) {
      continue;
    }
    const bool kept =
        is_plain_value(value) && std::ranges::find(kWithoutValue, name) == kWithoutValue.end();
    text.append(text.empty() ? "" : " ").append("--").append(name).append("=");
    text.append(kept ? value : "");
  }
  if (text.size() > kMaxDirectivesText) {
    return std::nullopt;
  }
  return text.empty() ? "--" : text;
}

}  // namespace ceems::jobscript
