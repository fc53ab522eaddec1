#include "ingest/manager/openpbs/job.h"

#include <algorithm>
#include <set>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/strings.h"
#include "ingest/manager/batch/text.h"
#include "jobscript/amounts.h"

namespace ceems::ingest::openpbs {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxId = 256;
constexpr std::size_t kMaxHosts = 65536;
constexpr std::size_t kMaxTail = std::size_t{16} << 10U;
constexpr double kKibi = 1024;
constexpr std::string_view kEnvironment = R"("Variable_List")";
constexpr std::int64_t kMaxSeconds = 253'402'300'799;  // the end of the year 9999

const json::value* find(const json::object& job, std::string_view key) {
  return job.if_contains(json::string_view(key.data(), key.size()));
}

std::string text_within(const json::object& job, std::string_view key, std::string_view inner) {
  const json::value* const value = find(job, key);
  const json::object* const object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? std::string() : text_of(*object, inner);
}

std::int64_t count_of(std::string_view text) {
  return std::clamp<std::int64_t>(parse_int<std::int64_t>(text).value_or(0), 0, kMaxBatchCount);
}

/// A time as text, or as seconds since the epoch.
std::int64_t time_of(const json::object& job, std::string_view key, const JobRules& rules) {
  const std::string text = text_of(job, key);
  if (const auto seconds = parse_int<std::int64_t>(text)) {
    return *seconds > 0 && *seconds < kMaxSeconds ? *seconds * 1000 : 0;
  }
  return parse_ctime(text, rules.zone, rules.now_ms).value_or(0);
}

/// "n1/0*4+n2/1": the part before the slash.
void take_hosts(std::string_view text, BatchJob& job) {
  while (!text.empty() && job.hosts.size() < kMaxHosts) {
    std::string_view chunk = take_until(text, '+');
    const std::string_view host = take_until(chunk, '/');
    if (!host.empty() && std::ranges::find(job.hosts, host) == job.hosts.end()) {
      job.hosts.emplace_back(host);
    }
  }
}

/// "(n1:ncpus=4:mem=8gb:ngpus=1)+(n1[1]:ncpus=4+n2:ncpus=2)": resources of all chunks together.
void take_vnodes(std::string_view text, BatchJob& job) {
  while (!text.empty()) {
    std::string_view chunk = text.substr(0, text.find_first_of("+)"));
    text.remove_prefix(std::min(chunk.size() + 1, text.size()));
    if (chunk.starts_with('(')) {
      chunk.remove_prefix(1);
    }
    static_cast<void>(take_until(chunk, ':'));  // vnode
    while (!chunk.empty()) {
      std::string_view value = take_until(chunk, ':');
      const std::string_view name = take_until(value, '=');
      if (name == "ncpus") {
        job.cpus = std::min(job.cpus + count_of(value), kMaxBatchCount);
      } else if (name == "ngpus") {
        job.gpus = std::min(job.gpus + count_of(value), kMaxBatchCount);
      } else if (name == "mem") {
        job.memory_bytes += jobscript::parse_size(value, 1).value_or(0);
      }
    }
  }
}

void take_request(const json::object& job, BatchJob& result) {
  result.time_limit_seconds =
      jobscript::clock_seconds(text_within(job, "Resource_List", "walltime"));
  result.requested_cpus = count_of(text_within(job, "Resource_List", "ncpus"));
  result.requested_memory_bytes =
      jobscript::parse_size(text_within(job, "Resource_List", "mem"), 1).value_or(0);
}

void take_allocation(const json::object& job, BatchJob& result) {
  take_hosts(text_of(job, "exec_host"), result);
  take_vnodes(text_of(job, "exec_vnode"), result);
  result.nodes = static_cast<std::int64_t>(result.hosts.size());
  if (result.nodes == 0) {
    result.nodes = count_of(text_within(job, "Resource_List", "nodect"));
  }
  if (result.cpus == 0) {
    result.cpus = count_of(text_within(job, "Resource_List", "ncpus"));
  }
  if (result.gpus == 0) {
    result.gpus = count_of(text_within(job, "Resource_List", "ngpus"));
  }
  if (result.memory_bytes <= 0) {
    result.memory_bytes =
        jobscript::parse_size(text_within(job, "Resource_List", "mem"), 1).value_or(0);
  }
}

std::string project_of(const json::object& job, const JobRules& rules) {
  for (const ProjectSource source : rules.projects) {
    std::string name;
    switch (source) {
      case ProjectSource::kProject:
        name = text_of(job, "project");
        name = name == "_pbs_project_default" ? "" : name;
        break;
      case ProjectSource::kAccount:
        name = text_of(job, "Account_Name");
        break;
      case ProjectSource::kGroup:
        name = text_of(job, "egroup");
        break;
    }
    if (!name.empty()) {
      return name;
    }
  }
  return {};
}

/// Words for the letters of job_state (qstat(1B)). F, X and M are over.
std::string state_of(std::string_view letter, std::string_view exit_status) {
  if (letter == "R") {
    return "RUNNING";
  }
  if (letter == "S" || letter == "U") {
    return "SUSPENDED";
  }
  if (letter == "E") {
    return "EXITING";
  }
  if (letter == "F" || letter == "X") {
    return exit_status == "0" ? "FINISHED" : "FAILED";
  }
  return std::string(letter);
}

/// When the job ended: when the server learned of it, else when it became history, else when it
/// changed last.
std::int64_t end_of(const json::object& job, const JobRules& rules, std::int64_t start_ms) {
  for (const char* const key : {"obittime", "history_timestamp", "mtime"}) {
    if (const std::int64_t time = time_of(job, key, rules); time > 0) {
      return std::max(time, start_ms);
    }
  }
  return 0;
}

std::string directory_of(const json::object& job) {
  std::string directory = text_within(job, "Variable_List", "PBS_O_WORKDIR");
  return directory.empty() ? text_of(job, "jobdir") : directory;
}

/// The members of a JSON object, each behind a comma, and their names. Nothing if the text is not
/// such an object, or has a member that is not named as the attributes of PBS are, or one that is
/// in `names` already.
std::optional<std::string> attributes_of(std::string_view text, std::set<std::string>& names) {
  std::string found;
  JsonScanner scanner(text);
  const bool read = each_member(scanner, [&](const std::string& name) {
    std::string value;
    if (!has_only_words(name, "_") || !names.insert(name).second || !scanner.value(value, 1)) {
      return false;
    }
    if (name != "euser" && name != "egroup") {  // Job_Owner, in front of the environment, is true
      found += fmt::format(R"(,"{}":{})", name, value);
    }
    return true;
  });
  return read && scanner.at_end() ? std::optional(found) : std::nullopt;
}

/// Whether an attribute of the record comes more than once.
bool repeats_attributes(std::string_view text) {
  std::set<std::string> names;
  std::string value;
  bool repeats = false;
  JsonScanner scanner(text);
  static_cast<void>(each_member(scanner, [&](const std::string& name) {
    value.clear();
    repeats = !names.insert(name).second;
    return !repeats && scanner.value(value, 1);
  }));
  return repeats;
}

}  // namespace

bool is_job_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxId && is_digit(id.front()) && has_only_words(id, "[].-_");
}

bool has_environment(std::string_view json_text) {
  return json_text.contains(kEnvironment);
}

std::string_view owner_of(std::string_view json_text) {
  constexpr std::string_view kOwner = R"("Job_Owner")";
  std::string_view front = json_text.substr(0, json_text.find(kEnvironment));
  const std::size_t at = front.find(kOwner);
  if (at == std::string_view::npos) {
    return {};
  }
  front = trim(front.substr(at + kOwner.size()));
  front = trim(front.substr(front.starts_with(':') ? 1 : front.size()));
  return front.starts_with('"') ? front.substr(1, front.find_first_of("@\"", 1) - 1)
                                : std::string_view();
}

std::string without_environment(std::string_view json_text) {
  const std::size_t begin = json_text.find(kEnvironment);
  if (begin == std::string_view::npos) {
    return {};
  }
  std::string_view head = trim(json_text.substr(0, begin));
  head = head.ends_with(',') ? head.substr(0, head.size() - 1) : head;
  std::set<std::string> before;
  if (!attributes_of(std::string(head) + "}", before)) {
    return {};
  }
  // The end of the environment is not known. It is as far back as what follows can be attributes.
  std::string best;
  for (std::size_t at = json_text.rfind('}'); at != std::string_view::npos && at > begin;
       at = json_text.rfind('}', at - 1)) {
    std::string_view tail = trim(json_text.substr(at + 1));
    if (!tail.starts_with(',') && !tail.starts_with('}')) {
      continue;
    }
    tail = trim(tail.starts_with(',') ? tail.substr(1) : tail);
    std::set<std::string> names = before;
    if (auto members = attributes_of("{" + std::string(tail), names)) {
      best = *std::move(members);
    } else if (tail.size() > kMaxTail) {
      break;
    }
  }
  return std::string(head) + best + "}";
}

Result<std::optional<BatchJob>> parse_job(std::string_view id,
                                          std::string_view json_text,
                                          const JobRules& rules) {
  if (!is_job_id(id)) {
    return fail(ErrorCode::kParse, "invalid job id '{}'", printable(id, 60));
  }
  if (id.find("[]") != std::string_view::npos) {
    return std::nullopt;
  }
  std::string believed;
  if (has_environment(json_text) && repeats_attributes(json_text)) {
    believed = without_environment(json_text);
    json_text = believed;
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  options.allow_invalid_utf8 = true;  // in names and environments; cleaned before they are stored
  boost::system::error_code error;
  json::value value =
      json::parse(json::string_view(json_text.data(), json_text.size()), error, {}, options);
  // A lone surrogate in the environment, for instance.
  if (std::string clean; error && append_json_object(clean, json_text)) {
    value = json::parse(clean, error, {}, options);
  }
  const json::object* const job = value.if_object();
  if (error || job == nullptr) {
    return fail(ErrorCode::kParse, "job {}: {}", id,
                error ? error.message() : "expected an object");
  }
  const std::string letter = text_of(*job, "job_state");
  if (letter.size() != 1) {
    return fail(ErrorCode::kParse, "job {}: invalid job_state '{}'", id, printable(letter, 40));
  }
  const std::string start = text_of(*job, "stime");
  if (start.empty()) {
    return std::nullopt;  // it has not started
  }
  BatchJob result;
  result.id = id;
  result.start_ms = time_of(*job, "stime", rules);
  if (result.start_ms == 0) {
    return fail(ErrorCode::kParse, "job {}: invalid stime '{}'", id, printable(start, 40));
  }
  const bool over = letter == "F" || letter == "X" || letter == "M";
  if (!over && (letter == "Q" || letter == "H" || letter == "W" || letter == "T")) {
    return std::nullopt;  // it was requeued
  }
  if (over) {
    result.end_ms = end_of(*job, rules, result.start_ms);
    if (result.end_ms == 0) {
      return fail(ErrorCode::kParse, "job {}: it is finished, but has no time of its end", id);
    }
  }
  const std::string exit_status = text_of(*job, "Exit_status");
  result.state = state_of(letter, exit_status);
  result.running_state = "RUNNING";
  result.name = text_of(*job, "Job_Name");
  result.user = text_of(*job, "euser");
  if (result.user.empty()) {
    const std::string owner = text_of(*job, "Job_Owner");
    result.user = owner.substr(0, owner.find('@'));
  }
  result.group = text_of(*job, "egroup");
  result.project = project_of(*job, rules);
  result.submit_ms = time_of(*job, "ctime", rules);
  if (result.submit_ms == 0) {
    result.submit_ms = time_of(*job, "qtime", rules);
  }
  take_allocation(*job, result);
  take_request(*job, result);
  result.tags = {{"exit_status", exit_status},
                 {"queue", text_of(*job, "queue")},
                 {"select", text_within(*job, "Resource_List", "select")},
                 {"used_cput", text_within(*job, "resources_used", "cput")},
                 {"used_mem", text_within(*job, "resources_used", "mem")},
                 {"used_walltime", text_within(*job, "resources_used", "walltime")},
                 {"workdir", directory_of(*job)}};
  return result;
}

}  // namespace ceems::ingest::openpbs
