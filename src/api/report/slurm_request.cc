#include "api/report/slurm_request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::api {
namespace {

using Number = std::optional<std::int64_t>;

constexpr std::int64_t kMaxAsked = 1'000'000;

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
constexpr std::array<std::string_view, 31> kKnown{"cores-per-socket",
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
                                                  "time",
                                                  "time-min",
                                                  "tres-per-job",
                                                  "tres-per-node",
                                                  "tres-per-socket",
                                                  "tres-per-task",
                                                  "wrap"};

/// The options of a command, by their long name, with the last value of each.
struct Options {
  std::string program = {};
  std::set<std::pair<std::string, std::string>, std::less<>> all = {};
  bool script = false;   ///< of sbatch, whose directives are not known
  bool ended = false;    ///< the end of the options was seen
  bool several = false;  ///< components of a heterogeneous job

  [[nodiscard]] std::optional<std::string_view> value(std::string_view name) const {
    const auto found = std::ranges::find(all, name, &std::pair<std::string, std::string>::first);
    return found == all.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  }
  [[nodiscard]] bool has(std::string_view name) const { return value(name).has_value(); }
  void set(std::string_view name, std::string_view text) {
    std::erase_if(all, [name](const auto& option) { return option.first == name; });
    all.emplace(name, text);
  }
};

/// The long option that a word begins, which may be shortened as getopt_long(3) allows.
std::string_view long_name(std::string_view word) {
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

std::string_view long_of(char letter) {
  const auto* const found =
      std::ranges::find(kShort, letter, &std::pair<char, std::string_view>::first);
  return found == kShort.end() ? std::string_view() : found->second;
}

/// Reads the options before the script or program. What follows is its own.
Options read_options(std::string_view line) {
  Options options;
  const std::string_view first = take_word(line);
  options.program = first.substr(first.rfind('/') + 1);
  while (true) {
    std::string_view word = take_word(line);
    if (word.empty()) {
      break;
    }
    if (word == ":") {
      options.several = true;
      break;
    }
    if (!word.starts_with('-') || word == "--") {
      options.ended = true;
      options.several = line.starts_with(": ") || line.find(" : ") != std::string_view::npos;
      break;
    }
    if (word.starts_with("--")) {
      word.remove_prefix(2);
      const std::size_t equals = word.find('=');
      const std::string_view name = long_name(word.substr(0, equals));
      if (name == "wrap") {  // the rest is its text
        options.ended = true;
        return options;
      }
      std::string_view value;
      if (equals != std::string_view::npos) {
        value = word.substr(equals + 1);
      } else if (std::ranges::find(kFlags, name) == kFlags.end()) {
        value = take_word(line);
      }
      options.set(name, value);
      continue;
    }
    word.remove_prefix(1);
    while (!word.empty()) {
      const char letter = word.front();
      word.remove_prefix(1);
      const std::string_view name = long_of(letter);
      if (!name.empty() || kShortWithValue.find(letter) != std::string_view::npos) {
        const std::string_view value = word.empty() ? take_word(line) : word;
        options.set(name.empty() ? std::string_view(&letter, 1) : name, value);
        break;
      }
    }
  }
  options.script = options.program == "sbatch";  // without a name it reads one from its input
  return options;
}

Number count_in(std::string_view text) {
  const auto number = parse_int<std::int64_t>(text);
  return number && *number >= 1 && *number <= kMaxAsked ? number : std::nullopt;
}

Number count_of_option(const Options& options, std::string_view name) {
  const auto text = options.value(name);
  return text ? count_in(*text) : std::nullopt;
}

/// How GPUs were asked for: "--gres=gpu:a100:" and 2 and ",ssd:1".
struct Gpus {
  std::string_view by = {};
  std::string option = {}, more = {};
  std::int64_t count = 0;
};

bool is_gpu_type(std::string_view text) {
  constexpr std::size_t kMaxType = 64;
  return !text.empty() && text.size() <= kMaxType && has_only_words(text, "-._");
}

/// Takes "2", "a100:2" or "a100" apart; nothing for anything else.
std::optional<std::pair<std::string, std::int64_t>> typed_count(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view last = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const Number count = count_in(last);
  if (!count) {
    return std::nullopt;
  }
  if (colon == std::string_view::npos) {
    return std::pair(std::string(), *count);
  }
  const std::string_view type = text.substr(0, colon);
  return is_gpu_type(type) ? std::optional(std::pair(std::string(type) + ":", *count))
                           : std::nullopt;
}

/// The only GPUs of --gres, with what else it asks for.
std::optional<Gpus> gpus_of_gres(std::string_view text) {
  std::optional<Gpus> found;
  std::string before;
  for (const std::string_view part : split(text, ',')) {
    std::string_view rest = part;
    if (take_until(rest, ':') != "gpu") {
      if (!has_only_words(part, "-._:") || part.empty()) {
        return std::nullopt;
      }
      (found ? found->more : before) += found ? fmt::format(",{}", part) : fmt::format("{},", part);
      continue;
    }
    const auto typed = typed_count(rest);
    if (!typed || found) {
      return std::nullopt;
    }
    found = Gpus{.by = "node",
                 .option = fmt::format("--gres={}gpu:{}", before, typed->first),
                 .count = typed->second};
  }
  return found;
}

/// The one option that asks for GPUs. Nothing if there is none, or several, which bind each other.
std::optional<Gpus> gpus_of(const Options& options) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOptions{
      {{"gpus", "job"},
       {"gpus-per-node", "node"},
       {"gpus-per-task", "task"},
       {"gpus-per-socket", "socket"}}};
  std::optional<Gpus> found;
  if (const auto gres = options.value("gres")) {
    found = gpus_of_gres(*gres);
    if (!found) {
      return std::nullopt;
    }
  }
  for (const auto& [name, by] : kOptions) {
    const auto text = options.value(name);
    if (!text) {
      continue;
    }
    const auto typed = typed_count(*text);
    if (!typed || found) {
      return std::nullopt;
    }
    found = Gpus{
        .by = by, .option = fmt::format("--{}={}", name, typed->first), .count = typed->second};
  }
  return options.has("ntasks-per-gpu") ? std::nullopt : found;
}

bool has_tres(const Options& options) {
  return options.has("tres-per-job") || options.has("tres-per-node") ||
         options.has("tres-per-socket") || options.has("tres-per-task");
}

void set_memory(const Options* options, const StoredUnit& unit, advice::Facts& facts) {
  if (options != nullptr) {
    for (const auto& [name, by] :
         {std::pair("mem", "node"), {"mem-per-cpu", "cpu"}, {"mem-per-gpu", "gpu"}}) {
      if (options->has(name)) {
        facts.set("slurm.mem", by);
        return;
      }
    }
  }
  const std::string per = unit.tag("mem_per");
  if (per == "cpu" || per == "node") {
    facts.set("slurm.mem", per);
  } else if (options == nullptr) {
    facts.set("slurm.mem", "node");
  } else if (!options->script) {
    facts.set("slurm.mem", "none");
  }
}

void set_gpus(const Options* options, const StoredUnit& unit, advice::Facts& facts) {
  std::optional<Gpus> gpus;
  if (options != nullptr) {
    // With fewer GPUs such a job has fewer CPUs, and with them less memory.
    const bool shrinks =
        options->has("cpus-per-gpu") && !options->has("mem") && !options->has("mem-per-gpu");
    gpus = has_tres(*options) || shrinks ? std::nullopt : gpus_of(*options);
  } else {
    const std::string type = unit.tag("gpu_type");
    const auto all = unit.allocated("gpus");
    const double nodes = std::max(unit.allocated("nodes").value_or(1), 1.0);
    gpus = Gpus{.by = "node",
                .option = fmt::format("--gres=gpu:{}", is_gpu_type(type) ? type + ":" : ""),
                .count = static_cast<std::int64_t>(all.value_or(0) / nodes)};
  }
  if (gpus) {
    facts.set("slurm.gpus_by", std::string(gpus->by));
    facts.set("slurm.gpus_option", gpus->option);
    facts.set("slurm.gpus_asked", static_cast<double>(gpus->count));
    facts.set("slurm.gpus_more", gpus->more);
  }
}

/// Sets by which options CPUs and nodes can be changed.
void set_size(const Options& options, const StoredUnit& unit, advice::Facts& facts) {
  for (const char* name :
       {"exclusive", "mincpus", "extra-node-info", "cores-per-socket", "sockets-per-node",
        "ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "cpus-per-gpu", "nodefile"}) {
    if (options.has(name)) {
      return;
    }
  }
  const bool tasks_given = options.has("ntasks") || options.has("ntasks-per-node");
  const bool cpus_given = options.has("cpus-per-task");
  const double nodes = std::max(unit.allocated("nodes").value_or(1), 1.0);
  const auto requested = unit.allocated("req_cpus");
  Number tasks = count_of_option(options, "ntasks");
  const Number per_node = count_of_option(options, "ntasks-per-node");
  const Number per_task = count_of_option(options, "cpus-per-task");
  if (!tasks && !options.has("ntasks")) {
    tasks = static_cast<std::int64_t>(static_cast<double>(per_node.value_or(1)) * nodes);
  }
  // A directive may say what the command does not; then the numbers differ.
  const bool certain = !options.script && tasks && (!cpus_given || per_task);
  const bool agrees =
      tasks && requested && *requested == static_cast<double>(*tasks * per_task.value_or(1));
  const bool known = certain || ((tasks_given || cpus_given) && agrees);
  facts.set("slurm.by_tasks", !known || options.has("ntasks"));
  facts.set("slurm.by_tasks_per_node", !known || options.has("ntasks-per-node"));
  facts.set("slurm.by_cpus", !known || (cpus_given && per_task != 1));
  if (known && !options.has("nodelist")) {
    facts.set("slurm.tasks", static_cast<double>(*tasks));
  }
}

/// Whether the text matches a pattern in which `*` stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t star = std::string_view::npos;
  std::size_t again = 0;
  std::size_t p = 0;
  std::size_t t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      again = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++again;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// "srun --pty": the program, and options that the command has.
bool is_started_by(std::string_view pattern, const Options& options) {
  if (take_word(pattern) != options.program) {
    return false;
  }
  for (std::string_view word = take_word(pattern); !word.empty(); word = take_word(pattern)) {
    word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
    if (!options.has(word)) {
      return false;
    }
  }
  return true;
}

/// Before 21.08 SLURM does not keep the command. A job of srun or salloc then has the name of the
/// program that it runs.
bool is_shell(std::string_view name) {
  constexpr std::array<std::string_view, 7> kShells{"bash", "csh",  "fish", "ksh",
                                                    "sh",   "tcsh", "zsh"};
  return std::ranges::find(kShells, name) != kShells.end();
}

}  // namespace

void add_slurm_request(const StoredUnit& unit, advice::Facts& facts) {
  if (unit.unit.resource_manager != "slurm") {
    return;
  }
  const std::string line = unit.tag("submit_line");
  if (line.empty()) {
    set_memory(nullptr, unit, facts);
    set_gpus(nullptr, unit, facts);
    facts.set("slurm.by_tasks", true);
    facts.set("slurm.by_tasks_per_node", true);
    facts.set("slurm.by_cpus", true);
    facts.set("slurm.time", true);
    return;
  }
  const Options options = read_options(line);
  // What cut the line off may have been an option; a component of a job has requests of its own.
  constexpr std::size_t kStored = 1024;  // bytes of a command (ingest/manager/slurm/job.h)
  facts.set("slurm.time", !options.several && !options.has("time-min"));
  constexpr std::size_t kCharacter = 4;  // of UTF-8, which is not cut
  if (options.several || (!options.ended && line.size() + kCharacter > kStored)) {
    return;
  }
  set_memory(&options, unit, facts);
  set_gpus(&options, unit, facts);
  set_size(options, unit, facts);
}

bool is_session(const StoredUnit& unit, const std::vector<std::string>& sessions) {
  std::optional<Options> options;
  return std::ranges::any_of(sessions, [&](std::string_view pattern) {
    const std::string_view of = take_until(pattern, '=');
    if (of == "submit") {
      const std::string line = unit.tag("submit_line");
      if (line.empty()) {
        return pattern == "srun --pty" && is_shell(unit.unit.name);
      }
      if (!options) {
        options = read_options(line);
      }
      return is_started_by(pattern, *options);
    }
    return matches(pattern, of == "name" ? unit.unit.name : unit.tag(of));
  });
}

}  // namespace ceems::api
