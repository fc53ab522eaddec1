#include "ingest/manager/batch/job.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
#include "ingest/manager/unit_fields.h"

namespace ceems::ingest {
namespace {

constexpr double kMebibytes = 1 << 20;

std::string allocation_text(const BatchJob& job) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("cpus", job.cpus).member("gpus", job.gpus);
  json.member("mem", static_cast<std::int64_t>(job.memory_bytes));
  json.member("nodes", job.nodes);
  if (job.requested_cpus > 0) {
    json.member("req_cpus", job.requested_cpus);
  }
  if (job.requested_memory_bytes > 0) {
    json.member("req_mem", static_cast<std::int64_t>(job.requested_memory_bytes));
  }
  if (job.time_limit_seconds > 0) {
    json.member("time_limit", job.time_limit_seconds);
  }
  json.end_object();
  return text;
}

std::string tags_text(const BatchJob& job) {
  auto tags = job.tags;
  tags.emplace_back("nodelist", fmt::format("{}", fmt::join(job.hosts, "|")));
  std::ranges::sort(tags);
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  for (const auto& [name, value] : tags) {
    json.member(name, clean_text(value));
  }
  json.end_object();
  return text;
}

}  // namespace

std::optional<model::Unit> to_unit(const BatchJob& job,
                                   model::Window window,
                                   std::int64_t counted_from_ms,
                                   const TimeZone& zone) {
  if (job.start_ms <= 0 || job.start_ms > window.end_ms) {
    return std::nullopt;
  }
  const bool running = job.end_ms == 0 || job.end_ms > window.end_ms;
  const std::int64_t end_ms = running ? window.end_ms : job.end_ms;
  const bool late = !running && job.end_ms <= window.start_ms;
  const std::int64_t from_ms = late ? job.start_ms : std::max(job.start_ms, counted_from_ms);
  model::Unit unit;
  unit.uuid = job.id;
  unit.name = clean_text(job.name);
  unit.project = clean_text(job.project);
  unit.groupname = clean_text(job.group);
  unit.username = clean_text(job.user);
  unit.created_at_ts = job.submit_ms;
  unit.started_at_ts = job.start_ms;
  unit.ended_at_ts = running ? 0 : job.end_ms;
  print_times(unit, zone, "Unknown");
  unit.elapsed = elapsed_text((end_ms - job.start_ms) / 1000);
  unit.state = running && job.end_ms != 0 ? job.running_state : clean_text(job.state);
  unit.allocation = allocation_text(job);
  unit.tags = tags_text(job);
  const double seconds = static_cast<double>(std::max<std::int64_t>(end_ms - from_ms, 0)) / 1000;
  unit.total_time_seconds = {
      {"walltime", seconds},
      {"alloc_cputime", static_cast<double>(job.cpus) * seconds},
      {"alloc_cpumemtime",
       job.memory_bytes > 0 ? std::floor(job.memory_bytes / kMebibytes * seconds) : seconds},
      {"alloc_gputime", static_cast<double>(job.gpus) * seconds},
      {"alloc_gpumemtime", job.gpus > 0 ? seconds : 0.0}};
  return unit;
}

}  // namespace ceems::ingest
