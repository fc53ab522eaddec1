#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "jobscript/amounts.h"
#include "jobscript/request.h"
#include "jobscript/submit_options.h"

namespace ceems::jobscript {
namespace {

using Count = std::optional<std::int64_t>;

/// Long options that matter here and not to reports, with their letters.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLetters{
    {{"J", "job-name"}, {"A", "account"}, {"p", "partition"}, {"a", "array"}, {"t", "time"}}};
/// Of these, one that the command has replaces any that the script has.
constexpr std::array<std::string_view, 3> kMemory{"mem", "mem-per-cpu", "mem-per-gpu"};

SubmitOptions with_long_names(SubmitOptions options) {
  for (const auto& [letter, name] : kLetters) {
    if (const auto value = options.value(letter); value && !options.has(name)) {
      options.set(name, std::string(*value));
    }
  }
  return options;
}

/// The options of the command, and the options of the script that it leaves.
SubmitOptions merged(SubmitOptions command, const SubmitOptions& script) {
  const auto is_memory = [](std::string_view name) {
    return std::ranges::find(kMemory, name) != kMemory.end();
  };
  bool memory = false;
  for (const auto& [name, text] : command.all) {
    memory = memory || is_memory(name);
  }
  for (const auto& [name, text] : script.all) {
    if (!command.has(name) && !(memory && is_memory(name))) {
      command.set(name, text);
    }
  }
  return command;
}

std::string text_in(const SubmitOptions& options, std::string_view name) {
  return std::string(options.value(name).value_or(""));
}

Count count_option(const SubmitOptions& options, std::string_view name) {
  const auto text = options.value(name);
  return text ? count_in(text->substr(0, text->find('-'))) : std::nullopt;  // "2-4": the least
}

/// "a100:2", "2", "a100" (one), and several of them: "a100:2,v100:1".
Count typed_counts(std::string_view text) {
  std::int64_t sum = 0;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view last = part.substr(part.rfind(':') + 1);
    const Count count = last.empty() || is_digit(last.front()) ? count_in(last) : Count(1);
    if (!count) {
      return std::nullopt;
    }
    sum += *count;
  }
  return sum;
}

/// The GPUs on each node that --gres asks for: 0 if none.
Count gpus_of_gres(std::string_view text) {
  std::int64_t sum = 0;
  for (std::string_view part : split(text, ',')) {
    if (part.starts_with("gres/") || part.starts_with("gres:")) {
      part.remove_prefix(5);
    }
    if (part == "gpu") {
      sum += 1;
    } else if (part.starts_with("gpu:")) {
      const Count count = typed_counts(part.substr(4));
      if (!count) {
        return std::nullopt;
      }
      sum += *count;
    }
  }
  return sum;
}

Count times(Count left, Count right) {
  return left && right ? Count(*left * *right) : std::nullopt;
}

/// How many tasks, nodes, CPUs and GPUs a job has.
struct Size {
  Count nodes, tasks, gpus;
  std::optional<double> cpus;
};

Size size_of(const SubmitOptions& options) {
  Size size;
  size.nodes = count_option(options, "nodes");
  size.tasks = count_option(options, "ntasks");
  const Count per_node = count_option(options, "ntasks-per-node");
  if (!size.nodes && size.tasks && per_node) {
    size.nodes = (*size.tasks + *per_node - 1) / *per_node;
  } else if (!size.nodes && size.tasks.value_or(1) == 1) {
    size.nodes = 1;
  }
  const auto all = options.value("gpus");
  const Count all_gpus = all ? typed_counts(*all) : std::nullopt;
  if (!size.tasks) {
    const Count per_gpu = count_option(options, "ntasks-per-gpu");
    size.tasks =
        per_gpu ? times(all_gpus, per_gpu) : times(size.nodes, per_node ? per_node : Count(1));
  }
  bool several = false;
  for (const auto& [name, by] : {std::pair("gres", size.nodes),
                                 {"gpus-per-node", size.nodes},
                                 {"gpus-per-task", size.tasks},
                                 {"gpus", Count(1)}}) {
    const auto text = options.value(name);
    if (!text) {
      continue;
    }
    const bool gres = std::string_view(name) == "gres";
    const Count gpus = times(gres ? gpus_of_gres(*text) : typed_counts(*text), by);
    if (gres && gpus == 0) {
      continue;  // other resources
    }
    size.gpus = several && size.gpus != gpus ? all_gpus : gpus;
    several = true;
  }
  for (const char* name :
       {"gpus-per-socket", "tres-per-job", "tres-per-node", "tres-per-socket", "tres-per-task"}) {
    if (options.has(name) && !several) {
      return size;  // not known, nor what depends on it
    }
  }
  size.gpus = several ? size.gpus : Count(0);
  const Count per_gpu = count_option(options, "cpus-per-gpu");
  const Count per_task = count_option(options, "cpus-per-task");
  const Count cpus = per_gpu && !per_task ? times(size.gpus, per_gpu)
                                          : times(size.tasks, per_task ? per_task : Count(1));
  if (cpus && !options.has("exclusive")) {
    size.cpus = static_cast<double>(*cpus);
  }
  return size;
}

Count memory_of(const SubmitOptions& options, const Size& size) {
  for (const auto& [name, by] :
       {std::pair("mem", size.nodes ? std::optional(static_cast<double>(*size.nodes))
                                    : std::optional<double>()),
        {"mem-per-cpu", size.cpus},
        {"mem-per-gpu",
         size.gpus ? std::optional(static_cast<double>(*size.gpus)) : std::optional<double>()}}) {
    const auto text = options.value(name);
    if (!text) {
      continue;
    }
    const auto each = parse_size(*text, kMebi);
    return each && *each > 0 && by && *each * *by > 0 && *each * *by < kMaxBytes
               ? Count(static_cast<std::int64_t>(*each * *by))
               : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Request read_slurm(std::span<const std::string> options, std::string_view script) {
  ScriptDirectives directives;
  while (!script.empty()) {
    directives.add_line(take_until(script, '\n'));
  }
  std::size_t end = 0;
  const SubmitOptions all = merged(with_long_names(read_submit_words(options, end)),
                                   with_long_names(directives.options()));
  const Size size = size_of(all);
  Request request;
  request.name = text_in(all, "job-name");
  if (request.name.empty() && all.has("wrap")) {
    request.name = "wrap";  // as sbatch calls it
  }
  request.project = text_in(all, "account");
  request.partition = text_in(all, "partition");
  request.deadline = text_in(all, "deadline");
  request.nodes = size.nodes;
  request.cpus = size.cpus;
  request.gpus = size.gpus;
  request.memory_bytes = memory_of(all, size);
  request.time_limit_s = slurm_seconds(text_in(all, "time"));
  request.array_tasks = array_tasks(text_in(all, "array"));
  for (const auto& [name, text] : all.all) {
    if (asks_for_resources(name) && name != "wrap" && name != "pty" && is_plain_value(text)) {
      request.directives.push_back(text.empty() ? "--" + name : fmt::format("--{}={}", name, text));
    }
  }
  return request;
}

}  // namespace ceems::jobscript
