#include <algorithm>
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

// The options of qsub of OpenPBS (qsub(1B), pbs_resources(7B)).
namespace ceems::jobscript {
namespace {

constexpr std::string_view kJoined = "fhIVXzG";  // without a value

struct PbsOptions {
  std::map<char, std::string> letters;                        ///< besides -l
  std::map<std::string, std::string, std::less<>> resources;  ///< of -l
};

/// "select=2:ncpus=4+1:ncpus=8,walltime=1:00:00"
void take_resources(std::string_view text, PbsOptions& options) {
  for (std::string_view value : split(text, ',')) {
    const std::string_view name = take_until(value, '=');
    options.resources[std::string(name)] = value;
  }
}

PbsOptions pbs_options(std::span<const std::string> words) {
  PbsOptions options;
  for (std::size_t at = 0; at < words.size(); ++at) {
    std::string_view word = words[at];
    if (!word.starts_with('-')) {
      continue;
    }
    word.remove_prefix(std::min(word.find_first_not_of(kJoined, 1), word.size()));
    if (word.empty()) {
      continue;
    }
    const char letter = word.front();
    std::string_view value = word.substr(1);
    if (value.empty()) {
      value = ++at < words.size() ? std::string_view(words[at]) : std::string_view();
    }
    if (letter == 'l') {
      take_resources(value, options);
    } else {
      options.letters[letter] = value;
    }
  }
  return options;
}

/// Adds up the chunks of a select, or of the older form nodes=2:ppn=8:gpus=1.
void take_chunks(std::string_view text, bool older, Request& request) {
  std::int64_t chunks = 0;
  double cpus = 0;
  double memory = 0;
  std::int64_t gpus = 0;
  bool all_memory = true;
  bool alone = true;
  for (std::string_view chunk : split(text, '+')) {
    alone = alone && chunk.size() == text.size();
    std::int64_t count = 1;
    if (!chunk.empty() && is_digit(chunk.front())) {
      count = count_in(take_until(chunk, ':')).value_or(0);
    }
    std::int64_t each_cpus = 1;
    std::int64_t each_gpus = 0;
    double each_memory = 0;
    while (!chunk.empty()) {
      std::string_view value = take_until(chunk, ':');
      const std::string_view name = take_until(value, '=');
      if (name == (older ? "ppn" : "ncpus")) {
        each_cpus = count_in(value).value_or(0);
      } else if (name == (older ? "gpus" : "ngpus")) {
        each_gpus = count_in(value).value_or(0);
      } else if (name == "mem") {
        each_memory = parse_size(value, 1).value_or(0);
      }
    }
    if (count == 0) {
      return;
    }
    chunks += count;
    cpus += static_cast<double>(count * each_cpus);
    gpus += count * each_gpus;
    memory += static_cast<double>(count) * each_memory;
    all_memory = all_memory && each_memory > 0;
  }
  if (older || (alone && chunks == 1)) {
    request.nodes = chunks;
  }
  request.cpus = cpus;
  request.gpus = gpus;
  if (all_memory && memory < kMaxBytes) {
    request.memory_bytes = static_cast<std::int64_t>(memory);
  }
}

}  // namespace

Request read_pbs(std::span<const std::string> options, std::string_view script) {
  PbsOptions all = pbs_options(options);
  PbsOptions of_script = pbs_options(directive_words(script, "#PBS"));
  all.letters.merge(of_script.letters);
  all.resources.merge(of_script.resources);
  const auto letter = [&all](char name) {
    const auto found = all.letters.find(name);
    return found == all.letters.end() ? std::string() : found->second;
  };
  const auto resource = [&all](std::string_view name) {
    const auto found = all.resources.find(name);
    return found == all.resources.end() ? std::string() : found->second;
  };
  Request request;
  request.name = letter('N');
  request.project = all.letters.contains('P') ? letter('P') : letter('A');
  const std::string queue = letter('q');
  request.partition = queue.substr(0, queue.find('@'));
  const std::string select = resource("select");
  const std::string nodes = resource("nodes");
  if (!select.empty() || !nodes.empty()) {
    take_chunks(select.empty() ? nodes : select, select.empty(), request);
    const std::string place = resource("place");
    if (!select.empty() && place.contains("scatter") && !select.contains('+')) {
      const auto count = count_in(select.substr(0, select.find(':')));
      request.nodes = count ? count : std::optional<std::int64_t>(1);
    }
  } else {
    const auto cpus = count_in(resource("ncpus"));
    request.cpus = static_cast<double>(cpus.value_or(1));
    request.gpus = count_in(resource("ngpus")).value_or(0);
    request.nodes = 1;
  }
  if (const auto memory = parse_size(resource("mem"), 1); memory && *memory > 0) {
    request.memory_bytes = static_cast<std::int64_t>(*memory);
  }
  if (const auto seconds = clock_seconds(resource("walltime")); seconds > 0) {
    request.time_limit_s = seconds;
  }
  request.array_tasks = array_tasks(letter('J'));
  for (const auto& [name, value] : all.resources) {
    if (is_plain_value(name) && is_plain_value(value)) {
      request.directives.push_back(value.empty() ? "-l " + name
                                                 : fmt::format("-l {}={}", name, value));
    }
  }
  return request;
}

}  // namespace ceems::jobscript
