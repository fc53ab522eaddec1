#include "exporter/rdma/command_reader.h"

#include <linux/capability.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::rdma {
namespace {

constexpr std::size_t kMaxLinks = 1'000'000;

/// The words of a line "KIND NAME item value ... comm PROCESS ...".
struct Line {
  std::string_view name;                ///< the word after the kind
  std::vector<std::string_view> items;  ///< the words after the name, up to "comm"
  std::vector<std::string_view> extra;  ///< the words after "comm", including the process's name
};

std::optional<Line> parse_line(std::string_view text, std::string_view kind) {
  if (take_word(text) != kind) {
    return std::nullopt;
  }
  Line line;
  line.name = take_word(text);
  bool name_came = false;
  for (auto word = take_word(text); !word.empty(); word = take_word(text)) {
    if (word == "comm" && !name_came) {
      name_came = true;
    } else {
      (name_came ? line.extra : line.items).push_back(word);
    }
  }
  return line;
}

/// The number after the first word `key`.
template <typename Int>
std::optional<Int> number(const std::vector<std::string_view>& words, std::string_view key) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == key) {
      if (const auto value = parse_int<Int>(words[i + 1])) {
        return value;
      }
    }
  }
  return std::nullopt;
}

std::optional<int> pid_of(const Line& line) {
  const auto pid = number<int>(line.items, "pid");
  return pid && *pid > 0 ? pid : std::nullopt;
}

/// Whether the text has only letters, digits, '_', '-' and '.', as names of devices have.
bool is_device(std::string_view name) {
  return !name.empty() && has_only_words(name, "_-.");
}

struct Link {
  std::string device;
  std::string port;
};

/// "mlx5_0/1", or "mlx5_0/-" for an object without a port.
std::optional<Link> parse_link(std::string_view name) {
  const std::string_view device = take_until(name, '/');
  if (!is_device(device)) {
    return std::nullopt;
  }
  if (name == "-") {
    return Link{std::string(device), ""};
  }
  if (!parse_int(name)) {
    return std::nullopt;
  }
  return Link{std::string(device), std::string(name)};
}

/// Calls `use` for each line of a kind.
template <typename Use>
void for_lines(std::string_view text, std::string_view kind, Use use) {
  std::size_t used = 0;
  while (!text.empty() && used < kMaxLinks) {
    if (const auto line = parse_line(take_until(text, '\n'), kind)) {
      ++used;
      use(*line);
    }
  }
}

std::vector<Objects> parse_objects(std::string_view text, std::string_view size_key) {
  std::vector<Objects> objects;
  for_lines(text, "dev", [&](const Line& line) {
    const auto pid = pid_of(line);
    const auto size = number<std::uint64_t>(line.items, size_key);
    if (pid && size && is_device(line.name)) {
      objects.push_back({std::string(line.name), *pid, 1, *size});
    }
  });
  return objects;
}

constexpr std::chrono::seconds kDeadline{5};

Result<std::string> output_of(const Result<os::CommandResult>& result, const std::string& what) {
  if (!result) {
    return fail(Error(result.error()).with_context(what));
  }
  if (result->exit_status != 0) {
    return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", what, result->exit_status,
                printable(trim(result->error_text)));
  }
  return result->output;
}

}  // namespace

std::vector<Objects> parse_regions(std::string_view text) {
  return parse_objects(text, "mrlen");
}

std::vector<Objects> parse_queues(std::string_view text) {
  return parse_objects(text, "cqe");
}

std::vector<QueuePairs> parse_pairs(std::string_view text) {
  std::vector<QueuePairs> pairs;
  for_lines(text, "link", [&](const Line& line) {
    const auto pid = pid_of(line);
    auto link = parse_link(line.name);
    if (pid && link) {
      pairs.push_back({std::move(link->device), std::move(link->port), *pid, 1});
    }
  });
  return pairs;
}

std::vector<QpCounters> parse_counters(std::string_view text) {
  std::vector<QpCounters> counters;
  for_lines(text, "link", [&](const Line& line) {
    const auto pid = pid_of(line);
    auto link = parse_link(line.name);
    if (!pid || !link) {
      return;
    }
    QpCounters found{std::move(link->device), std::move(link->port), *pid};
    for (const auto& words : {line.items, line.extra}) {
      for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const auto counter = std::ranges::find(kQpCounters, words[i]);
        const auto value = parse_int(words[i + 1]);
        if (counter != kQpCounters.end() && value) {
          found.values[static_cast<std::size_t>(counter - kQpCounters.begin())] = *value;
        }
      }
    }
    counters.push_back(std::move(found));
  });
  return counters;
}

std::vector<LinkMode> parse_modes(std::string_view text) {
  std::vector<LinkMode> modes;
  for_lines(text, "link", [&](const Line& line) {
    const auto automatic = std::ranges::find(line.items, "auto");
    if (!line.name.starts_with("mlx") || !parse_link(line.name) || automatic == line.items.end() ||
        automatic + 1 == line.items.end()) {
      return;
    }
    modes.push_back({std::string(line.name), *(automatic + 1) != "off"});
  });
  return modes;
}

Result<std::string> CommandReader::run(std::vector<std::string> arguments,
                                       const std::stop_token& stop,
                                       std::chrono::milliseconds limit) {
  std::string what = "rdma";
  for (const std::string& argument : arguments) {
    what += " " + argument;
  }
  return output_of(runner_.run({.path = program_,
                                .arguments = std::move(arguments),
                                .environment = environment_,
                                .timeout = std::min<std::chrono::milliseconds>(limit, kDeadline)},
                               stop),
                   what);
}

Result<std::vector<LinkMode>> CommandReader::modes(std::chrono::milliseconds limit,
                                                   std::stop_token stop) {
  CEEMS_TRY(text, run({"statistic", "qp", "mode"}, stop, limit));
  return parse_modes(text);
}

Result<Resources> CommandReader::read(bool counters, std::stop_token stop) {
  Resources resources;
  std::optional<Error> failure;
  const auto part = [&](std::vector<std::string> arguments, auto parse, auto& into) {
    auto text = run(std::move(arguments), stop, kDeadline);
    if (text) {
      into = parse(*text);
    } else {
      failure = std::move(text).error();
    }
  };
  part({"resource", "show", "mr"}, parse_regions, resources.regions);
  part({"resource", "show", "cq"}, parse_queues, resources.queues);
  part({"resource", "show", "qp"}, parse_pairs, resources.pairs);
  if (counters) {
    part({"statistic", "qp", "show"}, parse_counters, resources.counters);
  }
  if (failure && !resources.regions && !resources.queues && !resources.pairs) {
    return fail(*std::move(failure));
  }
  return resources;
}

Result<> CommandReader::set_counting(const std::string& link, bool on) {
  std::vector<std::string> arguments{"statistic", "qp", "set", "link", link, "auto"};
  arguments.emplace_back(on ? "type,pid" : "off");
  if (on) {
    arguments.emplace_back("on");
  }
  CEEMS_TRY(output_of(runner_.run({.path = program_,
                                   .arguments = std::move(arguments),
                                   .environment = environment_,
                                   .timeout = kDeadline,
                                   .as_root = true,
                                   .only_trusted = true}),
                      "rdma statistic qp set link " + link));
  return {};
}

std::vector<os::Capability> CommandReader::capabilities() const {
  return {CAP_SETUID, CAP_SETGID};
}

}  // namespace ceems::exporter::rdma
