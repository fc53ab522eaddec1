#include "ingest/manager/slurm/job.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/strings.h"
#include "base/text/node_list.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
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

/// The time in the configured zone if it is known, otherwise what SLURM printed.
std::string time_text(const std::optional<std::int64_t>& ms,
                      const std::string& word,
                      const TimeZone& zone) {
  return ms ? zone.local_with_offset(*ms) : clean_text(word);
}

std::string regex_of(const std::string& node_list) {
  const auto names = expand_node_list(node_list);
  return names ? tsdb::exact_regex(*names) : node_list;
}

std::string allocation_text(const Allocation& allocation, const SlurmDetails& details) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  const auto add = [&json](std::string_view name, const std::optional<std::int64_t>& value) {
    if (value) {
      json.member(name, *value);
    }
  };
  json.begin_object();
  add("array_job", details.array_job);
  add("array_task", details.array_task);
  json.member("billing", allocation.billing);
  add("consumed_energy", details.consumed_joules);
  json.member("cpus", allocation.cpus);
  add("eligible", details.eligible_ms);
  json.member("gpus", allocation.gpus);
  add("het_job", details.het_job);
  add("het_offset", details.het_offset);
  json.member("mem", allocation.memory_bytes);
  json.member("nodes", allocation.nodes);
  add("partition_cpus", details.partition_cpus);
  add("partition_mem", details.partition_bytes);
  add("partition_mem_cpu", details.partition_cpu_bytes);
  add("partition_mem_max", details.partition_max_bytes);
  add("partition_min_nodes", details.partition_min_nodes);
  add("partition_time", details.partition_seconds);
  add("req_cpus", details.requested_cpus);
  add("req_mem", details.requested_memory_bytes);
  add("restarts", details.restarts);
  add("time_limit", details.time_limit_seconds);
  json.end_object();
  return text;
}

/// The text, cut off at kMaxDetailBytes.
std::string short_text(std::string_view text) {
  const std::string clean = clean_text(text.substr(0, kMaxDetailBytes));
  return clean.size() <= kMaxDetailBytes ? clean : clean_text(clean.substr(0, kMaxDetailBytes));
}

std::string tags_text(const SlurmJob& job) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  const auto add = [&json](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      json.member(name, short_text(value));
    }
  };
  json.begin_object();
  add("constraints", job.details.constraints);
  json.member("exit_code", clean_text(job.exit_code)).member("gid", job.gid);
  add("gpu_type", job.details.gpu_type);
  add("mem_per", job.details.memory_per);
  json.member("nodelist", clean_text(job.node_list));
  json.member("nodelistexp", clean_text(regex_of(job.node_list)));
  json.member("partition", clean_text(job.partition)).member("qos", clean_text(job.qos));
  if (!job.details.js1.empty()) {
    json.member("js1", job.details.js1);
  }
  add("script_options", job.details.script_options);
  add("sluid", job.details.sluid);
  add("submit_line", job.details.submit_line);
  json.member("uid", job.uid).member("workdir", clean_text(job.work_dir)).end_object();
  return text;
}

}  // namespace

std::string js1_of(std::string_view comment) {
  comment = trim(comment);
  constexpr std::string_view kData = "JS1:H4s";  // base64 of gzip
  constexpr std::string_view kBase64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const bool good = comment.starts_with(kData) && comment.size() <= kMaxJs1Bytes &&
                    comment.find_first_not_of(kBase64, 4) == std::string_view::npos;
  return good ? std::string(comment) : std::string();
}

std::optional<std::int64_t> limit_seconds(std::optional<std::int64_t> minutes) {
  constexpr std::int64_t kMaxMinutes = 100LL * 366 * 24 * 60;
  return minutes && *minutes > 0 && *minutes <= kMaxMinutes ? std::optional(*minutes * 60)
                                                            : std::nullopt;
}

std::optional<std::int64_t> consumed_energy(std::string_view text) {
  const auto joules = parse_int<std::uint64_t>(text);
  return joules && *joules > 0 && *joules < (std::uint64_t{1} << 63U)
             ? std::optional(static_cast<std::int64_t>(*joules))
             : std::nullopt;
}

std::optional<std::int64_t> parse_requested_memory(std::string_view text,
                                                   std::optional<std::int64_t> cpus,
                                                   std::int64_t nodes) {
  double factor = 1;
  if (text.ends_with('c') || text.ends_with('n')) {
    factor = static_cast<double>(text.ends_with('c') ? cpus.value_or(0) : nodes);
    text.remove_suffix(1);
  }
  const double bytes = factor * parse_memory(text, MemoryRule::kExact);
  return bytes > 0 && bytes < kMaxBytes ? std::optional<std::int64_t>(std::llround(bytes))
                                        : std::nullopt;
}

std::string_view memory_per(std::string_view text) {
  return text.ends_with('c') ? "cpu" : text.ends_with('n') ? "node" : "";
}

std::string_view gpu_type_of(std::string_view resource) {
  constexpr std::string_view kGpu = "gres/gpu:";
  if (!resource.starts_with(kGpu) || !has_only_words(resource.substr(kGpu.size()), "-._")) {
    return {};
  }
  return resource.substr(kGpu.size());
}

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
                                   const TimeZone& zone) {
  const bool ends_later = job.end_ms && *job.end_ms > window.end_ms;
  // A job that never started was still pending at that time.
  if (job.start_ms ? *job.start_ms > window.end_ms : ends_later) {
    return std::nullopt;
  }
  model::Unit unit;
  unit.uuid = job.id;
  unit.name = clean_text(job.name);
  unit.project = clean_text(job.account);
  unit.groupname = clean_text(job.group);
  unit.username = clean_text(job.user);
  // SLURM gives the number of a user where a name cannot be looked up.
  unit.owner_stands_in = is_number(unit.username);
  unit.created_at = time_text(job.submit_ms, job.submit_text, zone);
  unit.started_at = time_text(job.start_ms, job.start_text, zone);
  unit.ended_at = ends_later ? "Unknown" : time_text(job.end_ms, job.end_text, zone);
  unit.created_at_ts = job.submit_ms.value_or(0);
  unit.started_at_ts = job.start_ms.value_or(0);
  unit.ended_at_ts = ends_later ? 0 : job.end_ms.value_or(0);
  unit.elapsed = ends_later ? elapsed_text((window.end_ms - unit.started_at_ts) / 1000)
                            : clean_text(job.elapsed);
  unit.state = ends_later ? "RUNNING" : clean_text(job.state);
  unit.allocation = allocation_text(job.allocation, job.details);
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
