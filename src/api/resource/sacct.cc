#include "api/resource/sacct.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "api/resource/json_text.h"
#include "api/resource/node_list.h"
#include "base/strings.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxRecordBytes = 1U << 20U;
// Bounds that keep products of allocation and time far from overflow.
constexpr std::int64_t kMaxCount = 1'000'000'000;
constexpr double kMaxBytes = 9e18;
constexpr std::int64_t kMebi = 1 << 20;

/// Positions of the fields in kSacctFields.
enum Field : std::size_t {
  kJobId,
  kPartition,
  kQos,
  kAccount,
  kGroup,
  kGid,
  kUser,
  kUid,
  kSubmit,
  kStart,
  kEnd,
  kElapsed,
  kElapsedRaw,
  kExitCode,
  kState,
  kAllocTres,
  kNodeList,
  kJobName,
  kWorkDir,
};

using Fields = std::array<std::string_view, kSacctFieldCount>;

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

/// Where name and working directory part in "name|dir".
std::size_t free_text_boundary(std::string_view text, std::string_view delimiter) {
  if (delimiter == "|") {
    const std::size_t slash = text.rfind("|/");
    if (slash != std::string_view::npos) {
      return slash;
    }
  }
  return text.rfind(delimiter);
}

bool split_fields(std::string_view record, std::string_view delimiter, Fields& fields) {
  for (std::size_t i = kJobId; i < kJobName; ++i) {
    const std::size_t end = record.find(delimiter);
    if (end == std::string_view::npos) {
      return false;
    }
    fields.at(i) = record.substr(0, end);
    record.remove_prefix(end + delimiter.size());
  }
  const std::size_t boundary = free_text_boundary(record, delimiter);
  if (boundary == std::string_view::npos) {
    return false;
  }
  fields[kJobName] = record.substr(0, boundary);
  fields[kWorkDir] = record.substr(boundary + delimiter.size());
  return true;
}

std::int64_t parse_count(std::string_view text) {
  return std::min(parse_int<std::int64_t>(text).value_or(0), kMaxCount);
}

std::int64_t parse_memory(std::string_view text) {
  double scale = static_cast<double>(kMebi);
  const std::size_t letter =
      text.empty() ? std::string_view::npos : std::string_view("KMGTPE").find(text.back());
  if (letter != std::string_view::npos) {
    scale = std::pow(1024.0, static_cast<double>(letter + 1));
    text.remove_suffix(1);
  }
  const double bytes = parse_double(text).value_or(0) * scale;
  return bytes > 0 && bytes < kMaxBytes ? std::llround(bytes) : 0;
}

/// With an offset or, where SLURM cuts it off (22.05 prints 19 characters whatever the format
/// says), in UTC, the zone that the command was given.
std::optional<std::int64_t> parse_time(std::string_view text) {
  constexpr std::size_t kWithoutOffset = 19;
  std::string full(text);
  if (full.size() == kWithoutOffset) {
    full.append("+0000");
  }
  return parse_localz(full);
}

/// The time where it is known, printed in our zone; else SLURM's own word.
std::string time_text(const std::optional<std::int64_t>& ms,
                      const std::string& word,
                      const store::TimeZone& zone) {
  return ms ? zone.local_with_offset(*ms) : clean_text(word);
}

std::string regex_of(const std::string& node_list) {
  const auto names = expand_node_list(node_list);
  return names ? tsdb::exact_regex(*names) : node_list;
}

void insert_sorted(std::vector<std::string>& list, std::string_view text) {
  const auto at = std::ranges::lower_bound(list, text);
  if (at == list.end() || *at != text) {
    list.emplace(at, text);
  }
}

}  // namespace

Allocation parse_alloc_tres(std::string_view text) {
  Allocation allocation;
  std::optional<std::int64_t> all_gpus;
  std::int64_t typed_gpus = 0;
  while (!text.empty()) {
    const std::string_view element = take_until(text, ',');
    const std::size_t equals = element.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    const std::string_view name = element.substr(0, equals);
    const std::string_view value = element.substr(equals + 1);
    if (name == "billing") {
      allocation.billing = parse_count(value);
    } else if (name == "node") {
      allocation.nodes = parse_count(value);
    } else if (name == "cpu") {
      allocation.cpus = parse_count(value);
    } else if (name == "mem") {
      allocation.memory_bytes = parse_memory(value);
    } else if (name == "gres/gpu") {
      all_gpus = parse_count(value);
    } else if (name.starts_with("gres/gpu:")) {
      typed_gpus = std::min(typed_gpus + parse_count(value), kMaxCount);
    }
  }
  allocation.gpus = all_gpus.value_or(typed_gpus);
  return allocation;
}

Result<std::optional<SacctJob>> parse_sacct_record(std::string_view record,
                                                   std::string_view delimiter) {
  Fields fields;
  if (!split_fields(record, delimiter, fields)) {
    return fail(ErrorCode::kParse, "expected {} fields, got {}: '{}'", kSacctFieldCount,
                count_of(record, delimiter) + 1, printable(record, 100));
  }
  const std::string_view id = fields[kJobId];
  if (id.empty() ||
      id.find_first_not_of("0123456789.abcdefghijklmnopqrstuvwxyz_+") != std::string_view::npos ||
      id.front() < '0' || id.front() > '9') {
    return fail(ErrorCode::kParse, "not a job id: '{}'", printable(id, 40));
  }
  if (id.find('.') != std::string_view::npos || fields[kNodeList] == "None assigned") {
    return std::nullopt;
  }
  SacctJob job;
  job.id = id;
  job.partition = fields[kPartition];
  job.qos = fields[kQos];
  job.account = fields[kAccount];
  job.group = fields[kGroup];
  job.gid = parse_int<std::int64_t>(fields[kGid]).value_or(0);
  job.user = fields[kUser];
  job.uid = parse_int<std::int64_t>(fields[kUid]).value_or(0);
  job.submit_text = fields[kSubmit];
  job.start_text = fields[kStart];
  job.end_text = fields[kEnd];
  job.submit_ms = parse_time(fields[kSubmit]);
  job.start_ms = parse_time(fields[kStart]);
  job.end_ms = parse_time(fields[kEnd]);
  job.elapsed = fields[kElapsed];
  job.exit_code = fields[kExitCode];
  job.state = fields[kState];
  job.allocation = parse_alloc_tres(fields[kAllocTres]);
  job.node_list = fields[kNodeList];
  job.name = fields[kJobName];
  job.work_dir = fields[kWorkDir];
  return job;
}

void SacctReader::add_line(std::string_view line) {
  if (!decided_) {
    if (line.empty()) {
      return;
    }
    decided_ = true;
    joins_lines_ = line.find(delimiter_) != std::string_view::npos;
    if (!joins_lines_) {
      delimiter_ = "|";
    }
  }
  if (!joins_lines_) {
    if (!line.empty()) {
      record_ = line;
      end_record();
    }
    return;
  }
  constexpr std::size_t kDelimiters = kSacctFieldCount - 1;
  const std::size_t in_line = count_of(line, delimiter_);
  const std::size_t in_record = count_of(record_, delimiter_);
  // A whole record begins, or the one at hand has all its fields and this belongs to the next.
  if (in_line >= kDelimiters || (in_record >= kDelimiters && in_line > 0) ||
      record_.size() + line.size() > kMaxRecordBytes) {
    end_record();
  }
  if (!record_.empty()) {
    record_ += '\n';
  }
  record_ += line;
}

void SacctReader::end_record() {
  if (record_.empty()) {
    return;
  }
  auto job = parse_sacct_record(record_, delimiter_);
  record_.clear();
  if (!job) {
    if (malformed_++ == 0) {
      first_problem_ = job.error().message;
    }
    return;
  }
  ++recognized_;
  if (*job) {
    jobs_.push_back(std::move(**job));
  }
}

Result<std::vector<SacctJob>> SacctReader::finish() {
  end_record();
  if (recognized_ == 0 && malformed_ > 0) {
    return fail(ErrorCode::kParse, "output of sacct: {}", first_problem_);
  }
  return std::move(jobs_);
}

std::int64_t active_ms(const SacctJob& job, model::Window window) {
  if (!job.start_ms) {
    return 0;
  }
  if (job.end_ms && *job.end_ms < window.start_ms) {
    return std::max<std::int64_t>(*job.end_ms - *job.start_ms, 0);
  }
  const std::int64_t end = std::min(job.end_ms.value_or(window.end_ms), window.end_ms);
  return std::max<std::int64_t>(end - std::max(*job.start_ms, window.start_ms), 0);
}

std::optional<model::Unit> to_unit(const SacctJob& job,
                                   model::Window window,
                                   const store::TimeZone& zone,
                                   const std::string& cluster_id) {
  if (job.start_ms && *job.start_ms > window.end_ms) {
    return std::nullopt;
  }
  const bool ends_later = job.end_ms && *job.end_ms > window.end_ms;
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
  unit.elapsed = ends_later && job.start_ms ? elapsed_text((window.end_ms - *job.start_ms) / 1000)
                                            : clean_text(job.elapsed);
  unit.state = ends_later ? "RUNNING" : clean_text(job.state);

  JsonObject allocation;
  allocation.add("billing", job.allocation.billing);
  allocation.add("cpus", job.allocation.cpus);
  allocation.add("gpus", job.allocation.gpus);
  allocation.add("mem", job.allocation.memory_bytes);
  allocation.add("nodes", job.allocation.nodes);
  unit.allocation = allocation.text();

  JsonObject tags;
  tags.add("exit_code", job.exit_code);
  tags.add("gid", job.gid);
  tags.add("nodelist", job.node_list);
  tags.add("nodelistexp", regex_of(job.node_list));
  tags.add("partition", job.partition);
  tags.add("qos", job.qos);
  tags.add("uid", job.uid);
  tags.add("workdir", job.work_dir);
  unit.tags = tags.text();

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

void Associations::add_line(std::string_view line) {
  const std::string_view account = take_until(line, '|');
  const std::string_view user = take_until(line, '|');
  if (account.empty() || user.empty() || account == "root" || user == "root") {
    return;
  }
  const std::string account_text = clean_text(account);
  const std::string user_text = clean_text(user);
  insert_sorted(accounts_of_users_[user_text], account_text);
  insert_sorted(users_of_accounts_[account_text], user_text);
}

}  // namespace ceems::api
