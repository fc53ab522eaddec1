#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/strings.h"
#include "jobscript/amounts.h"
#include "jobscript/request.h"
#include "jobscript/submit_options.h"

// The options of bsub of IBM Spectrum LSF.
namespace ceems::jobscript {
namespace {

/// The options that matter here, all of which take a value.
constexpr std::array<std::string_view, 9> kOptions{"-G", "-J",   "-M", "-P", "-R",
                                                   "-W", "-gpu", "-n", "-q"};
using LsfOptions = std::map<std::string, std::string, std::less<>>;

LsfOptions lsf_options(std::span<const std::string> words) {
  LsfOptions options;
  for (std::size_t at = 0; at < words.size(); ++at) {
    std::string_view word = words[at];
    std::string_view name;
    for (const std::string_view known : kOptions) {
      if (word.starts_with(known) && known.size() > name.size()) {
        name = known;
      }
    }
    // "-n4" holds its value; "-notify" is another option.
    const std::string_view inside = word.substr(name.size());
    if (name.empty() || (!inside.empty() && is_letter(inside.front()))) {
      continue;
    }
    std::string value(inside);
    if (inside.empty()) {
      value = ++at < words.size() ? words[at] : std::string();
    }
    std::string& stored = options[std::string(name)];
    if (name != "-R" || stored.empty()) {
      stored = value;
    } else {
      stored.append(" ").append(value);  // requirements add up
    }
  }
  return options;
}

/// "hours:minutes" or minutes, and a host behind a slash.
std::optional<std::int64_t> limit_of(std::string_view text) {
  text = text.substr(0, text.find('/'));
  std::int64_t minutes = 0;
  int parts = 0;
  for (const std::string_view part : split(text, ':')) {
    const auto number = parse_int<std::int64_t>(part);
    if (!number || *number < 0 || *number > 1'000'000 || ++parts > 2) {
      return std::nullopt;
    }
    minutes = minutes * 60 + *number;
  }
  return minutes > 0 ? std::optional(minutes * 60) : std::nullopt;
}

/// The number behind "NAME=" in a section such as span[...] or the value of -gpu.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(at + name.size());
  return count_in(text.substr(0, text.find_first_not_of("0123456789")));
}

bool is_plain_requirement(std::string_view text) {
  constexpr std::size_t kMaxRequirement = 256;
  return text.size() <= kMaxRequirement && has_only_words(text, "-._:,=*+[]/ ");
}

}  // namespace

Request read_lsf(std::span<const std::string> options, std::string_view script) {
  LsfOptions all = lsf_options(options);
  LsfOptions of_script = lsf_options(directive_words(script, "#BSUB"));
  all.merge(of_script);
  const auto value = [&all](std::string_view name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string() : found->second;
  };
  Request request;
  std::string name = value("-J");
  if (const std::size_t bracket = name.find('['); bracket != std::string::npos) {
    const std::size_t end = name.find(']', bracket);
    if (end != std::string::npos) {
      request.array_tasks = array_tasks(name.substr(bracket + 1, end - bracket - 1));
    }
    name.resize(bracket);
  }
  request.name = name;
  request.project = all.contains("-P") ? value("-P") : value("-G");
  request.partition = value("-q");
  const std::string slots_text = value("-n");
  const auto slots = slots_text.empty() ? std::optional<std::int64_t>(1)
                                        : count_in(slots_text.substr(0, slots_text.find(',')));
  const std::string requirement = value("-R");
  if (slots) {
    request.cpus = static_cast<double>(*slots);
    const auto on_host = number_behind(requirement, "ptile=");
    if (*slots == 1 || number_behind(requirement, "hosts=") == 1) {
      request.nodes = 1;
    } else if (on_host) {
      request.nodes = (*slots + *on_host - 1) / *on_host;
    }
  }
  const std::string gpu = value("-gpu");
  if (!all.contains("-gpu")) {
    request.gpus = 0;
  } else if (const auto each = number_behind(gpu, "num=").value_or(1); gpu.contains("/task")) {
    request.gpus = slots ? std::optional(each * *slots) : std::nullopt;
  } else {
    request.gpus = request.nodes ? std::optional(each * *request.nodes) : std::nullopt;
  }
  if (request.nodes && slots) {
    const double memory = reserved_memory(requirement, *request.nodes, *slots);
    if (memory > 0 && memory < kMaxBytes) {
      request.memory_bytes = static_cast<std::int64_t>(memory);
    }
  }
  request.time_limit_s = limit_of(value("-W"));
  for (const std::string_view option : {"-M", "-R", "-W", "-gpu", "-n"}) {
    const std::string text = value(option);
    if (!text.empty() && is_plain_requirement(text)) {
      request.directives.push_back(text.contains(' ') || text.contains('[')
                                       ? fmt::format("{} \"{}\"", option, text)
                                       : fmt::format("{} {}", option, text));
    }
  }
  return request;
}

}  // namespace ceems::jobscript
