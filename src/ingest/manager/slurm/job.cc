#include "ingest/manager/slurm/job.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/strings.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
#include "ingest/manager/slurm/node_list.h"
#include "tsdb/client.h"

namespace ceems::ingest {
namespace {

constexpr std::int64_t kMaxCount = 1'000'000'000;
constexpr double kMaxBytes = 9e18;
constexpr std::int64_t kMebi = 1 << 20;

double parse_memory(std::string_view text, MemoryRule rule) {
  double scale = static_cast<double>(kMebi);
  const std::size_t letter =
      text.empty() ? std::string_view::npos : std::string_view("KMGTPE").find(text.back());
  if (letter != std::string_view::npos) {
    scale = std::pow(1024.0, static_cast<double>(letter + 1));
    text.remove_suffix(1);
  }
  const double number = parse_double(text).value_or(0);
  return (rule == MemoryRule::kTruncated ? std::trunc(number) : number) * scale;
}

/// The time where it is known, printed in our zone; else SLURM's own word.
std::string time_text(const std::optional<std::int64_t>& ms,
                      const std::string& word,
                      const TimeZone& zone) {
  return ms ? zone.local_with_offset(*ms) : clean_text(word);
}

std::string regex_of(const std::string& node_list) {
  const auto names = expand_node_list(node_list);
  return names ? tsdb::exact_regex(*names) : node_list;
}

std::string allocation_text(const Allocation& allocation) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("billing", allocation.billing).member("cpus", allocation.cpus);
  json.member("gpus", allocation.gpus).member("mem", allocation.memory_bytes);
  json.member("nodes", allocation.nodes).end_object();
  return text;
}

std::string tags_text(const SlurmJob& job) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("exit_code", clean_text(job.exit_code)).member("gid", job.gid);
  json.member("nodelist", clean_text(job.node_list));
  json.member("nodelistexp", clean_text(regex_of(job.node_list)));
  json.member("partition", clean_text(job.partition)).member("qos", clean_text(job.qos));
  json.member("uid", job.uid).member("workdir", clean_text(job.work_dir)).end_object();
  return text;
}

}  // namespace

void AllocationBuilder::add(std::string_view name, std::int64_t count) {
  count = std::clamp<std::int64_t>(count, 0, kMaxCount);
  if (name == "billing") {
    allocation_.billing = count;
  } else if (name == "node") {
    allocation_.nodes = count;
  } else if (name == "cpu") {
    allocation_.cpus = count;
  } else if (name == "gres/gpu") {
    all_gpus_ = count;
  } else if (name.starts_with("gres/gpu:")) {
    typed_gpus_ = std::min(typed_gpus_ + count, kMaxCount);
  }
}

void AllocationBuilder::add_memory(double bytes) {
  allocation_.memory_bytes = bytes > 0 && bytes < kMaxBytes ? std::llround(bytes) : 0;
}

Allocation AllocationBuilder::done() const {
  Allocation allocation = allocation_;
  allocation.gpus = all_gpus_.value_or(typed_gpus_);
  return allocation;
}

Allocation parse_alloc_tres(std::string_view text, MemoryRule rule) {
  AllocationBuilder builder;
  while (!text.empty()) {
    const std::string_view element = take_until(text, ',');
    const std::size_t equals = element.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    const std::string_view name = element.substr(0, equals);
    const std::string_view value = element.substr(equals + 1);
    if (name == "mem") {
      builder.add_memory(parse_memory(value, rule));
    } else {
      builder.add(name, parse_int<std::int64_t>(value).value_or(0));
    }
  }
  return builder.done();
}

std::int64_t active_ms(const SlurmJob& job, model::Window window) {
  if (!job.start_ms) {
    return 0;
  }
  if (job.end_ms && *job.end_ms < window.start_ms) {
    return std::max<std::int64_t>(*job.end_ms - *job.start_ms, 0);
  }
  const std::int64_t end = std::min(job.end_ms.value_or(window.end_ms), window.end_ms);
  return std::max<std::int64_t>(end - std::max(*job.start_ms, window.start_ms), 0);
}

std::optional<model::Unit> to_unit(const SlurmJob& job,
                                   model::Window window,
                                   const TimeZone& zone,
                                   const std::string& cluster_id) {
  const bool ends_later = job.end_ms && *job.end_ms > window.end_ms;
  // What never started was waiting then.
  if (job.start_ms ? *job.start_ms > window.end_ms : ends_later) {
    return std::nullopt;
  }
  model::Unit unit;
  unit.cluster_id = cluster_id;
  unit.resource_manager = "slurm";
  unit.uuid = job.id;
  unit.name = clean_text(job.name);
  unit.project = clean_text(job.account);
  unit.groupname = clean_text(job.group);
  unit.username = clean_text(job.user);
  unit.created_at = time_text(job.submit_ms, job.submit_text, zone);
  unit.started_at = time_text(job.start_ms, job.start_text, zone);
  unit.ended_at = ends_later ? "Unknown" : time_text(job.end_ms, job.end_text, zone);
  unit.created_at_ts = job.submit_ms.value_or(0);
  unit.started_at_ts = job.start_ms.value_or(0);
  unit.ended_at_ts = ends_later ? 0 : job.end_ms.value_or(0);
  unit.elapsed = ends_later ? elapsed_text((window.end_ms - unit.started_at_ts) / 1000)
                            : clean_text(job.elapsed);
  unit.state = ends_later ? "RUNNING" : clean_text(job.state);
  unit.allocation = allocation_text(job.allocation);
  unit.tags = tags_text(job);

  const std::int64_t whole_seconds = active_ms(job, window) / 1000;
  const auto seconds = static_cast<double>(whole_seconds);
  const auto memory = static_cast<double>(job.allocation.memory_bytes);
  unit.total_time_seconds = {
      {"walltime", seconds},
      {"alloc_cputime", static_cast<double>(job.allocation.cpus) * seconds},
      {"alloc_cpumemtime",
       memory > 0 ? std::floor(memory / static_cast<double>(kMebi) * seconds) : seconds},
      {"alloc_gputime", static_cast<double>(job.allocation.gpus) * seconds},
      {"alloc_gpumemtime", job.allocation.gpus > 0 ? seconds : 0.0}};
  return unit;
}

}  // namespace ceems::ingest
