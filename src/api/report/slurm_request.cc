#include "api/report/slurm_request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/strings.h"
#include "ingest/manager/slurm/job.h"
#include "jobscript/amounts.h"
#include "jobscript/submit_options.h"

namespace ceems::api {
namespace {

using Count = std::optional<std::int64_t>;
using jobscript::count_in;
using jobscript::SubmitOptions;

constexpr double kNodeShare = 0.9;  ///< of the memory of a node that is for jobs, as in the rules

Count count_of_option(const SubmitOptions& options, std::string_view name) {
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
  const Count count = count_in(last);
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
std::optional<Gpus> gpus_of(const SubmitOptions& options) {
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

bool has_tres(const SubmitOptions& options) {
  return options.has("tres-per-job") || options.has("tres-per-node") ||
         options.has("tres-per-socket") || options.has("tres-per-task");
}

void set_memory(const SubmitOptions* options, const StoredUnit& unit, advice::Facts& facts) {
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

void set_gpus(const SubmitOptions* options, const StoredUnit& unit, advice::Facts& facts) {
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
void set_size(const SubmitOptions& options, const StoredUnit& unit, advice::Facts& facts) {
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
  Count tasks = count_of_option(options, "ntasks");
  const Count per_node = count_of_option(options, "ntasks-per-node");
  const Count per_task = count_of_option(options, "cpus-per-task");
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
bool is_started_by(std::string_view pattern, const SubmitOptions& options) {
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
  const SubmitOptions options = jobscript::read_submit_options(line, unit.tag("script_options"));
  // What cut the line off may have been an option; a component of a job has requests of its own.
  facts.set("slurm.time", !options.several && !options.has("time-min"));
  constexpr std::size_t kCharacter = 4;  // of UTF-8, which is not cut
  if (options.several || (!options.ended && line.size() + kCharacter > ingest::kMaxDetailBytes)) {
    return;
  }
  set_memory(&options, unit, facts);
  set_gpus(&options, unit, facts);
  set_size(options, unit, facts);
}

void add_partition_limits(const StoredUnit& unit, advice::Facts& facts) {
  const auto seconds = unit.allocated("partition_time");
  if (seconds && *seconds > 0) {
    facts.set("queue.limit", *seconds);
  }
  const double nodes = std::max(unit.allocated("nodes").value_or(1), 1.0);
  const double cpus = unit.allocated("cpus").value_or(0) / nodes;
  for (const auto& [name, limit] :
       {std::pair("queue.cpus", "partition_cpus"), {"queue.min_nodes", "partition_min_nodes"}}) {
    if (const auto value = unit.allocated(limit)) {
      facts.set(name, *value);
    }
  }
  const auto for_cpu = unit.allocated("partition_mem_cpu");
  const auto on_nodes = unit.allocated("partition_mem");
  auto memory = on_nodes ? on_nodes : unit.allocated("partition_mem_max");
  if (for_cpu) {
    facts.set("queue.mem_cpu", *for_cpu);
    memory = std::min(memory.value_or(*for_cpu * cpus), *for_cpu * cpus);
  }
  if (!memory) {
    return;
  }
  const advice::Value of_nodes = facts.value_of("node.mem");
  const auto* const bytes = std::get_if<double>(&of_nodes);
  if (!on_nodes && bytes != nullptr) {
    // Which nodes can have the job is not known, only those that had it.
    memory = std::min(*memory, kNodeShare * *bytes);
  }
  // A line by CPU or GPU is rounded up to whole MiB.
  constexpr double kMiB = 1024.0 * 1024;
  const advice::Value by = facts.value_of("slurm.mem");
  const auto* const form = std::get_if<std::string_view>(&by);
  double shares = 0;
  if (form != nullptr && *form != "node" && *form != "none") {
    shares = *form == "cpu" ? cpus : unit.allocated("gpus").value_or(0) / nodes;
  }
  facts.set("queue.mem", std::max(*memory - shares * kMiB, 0.0));
}

bool is_session(const StoredUnit& unit, const std::vector<std::string>& sessions) {
  std::optional<SubmitOptions> options;
  return std::ranges::any_of(sessions, [&](std::string_view pattern) {
    const std::string_view of = take_until(pattern, '=');
    if (of == "submit") {
      const std::string line = unit.tag("submit_line");
      if (line.empty()) {
        return pattern == "srun --pty" && is_shell(unit.unit.name);
      }
      if (!options) {
        options = jobscript::read_submit_options(line);
      }
      return is_started_by(pattern, *options);
    }
    return matches(pattern, of == "name" ? unit.unit.name : unit.tag(of));
  });
}

}  // namespace ceems::api
