#include "ingest/manager/lsf/job.h"

#include <algorithm>
#include <set>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_text.h"
#include "base/strings.h"
#include "ingest/manager/batch/text.h"
#include "jobscript/amounts.h"

namespace ceems::ingest::lsf {
namespace {

namespace json = boost::json;

constexpr double kKibi = 1024;
constexpr double kMebi = 1024 * 1024;
constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxHosts = 65536;
constexpr std::size_t kMaxIdDigits = 20;
constexpr std::size_t kMaxName = 512;

/// "6" or "6[1]".
bool is_id(std::string_view text) {
  const std::string_view job = take_until(text, '[');
  return is_number(job, kMaxIdDigits) &&
         (text.empty() ||
          (text.ends_with(']') && is_number(text.substr(0, text.size() - 1), kMaxIdDigits)));
}

void add_host(BatchJob& job, std::string_view host) {
  if (!host.empty() && job.hosts.size() < kMaxHosts &&
      std::ranges::find(job.hosts, host) == job.hosts.end()) {
    job.hosts.emplace_back(host);
  }
}

/// Adds "host" or "2*host"; returns the number of slots.
std::int64_t add_slots(BatchJob& job, std::string_view text) {
  std::int64_t times = 1;
  if (const auto star = text.find('*'); star != std::string_view::npos) {
    times = parse_int<std::int64_t>(text.substr(0, star)).value_or(0);
    text.remove_prefix(star + 1);
  }
  add_host(job, text);
  return std::clamp<std::int64_t>(times, 0, kMaxBatchCount);
}

/// The number of different GPUs in "a:0,1;b:0/3/0".
std::int64_t count_gpus(std::string_view text) {
  std::set<std::pair<std::string_view, std::string_view>> gpus;
  while (!text.empty()) {
    std::string_view list = take_until(text, ';');
    const std::string_view host = trim(take_until(list, ':'));
    while (!list.empty() && gpus.size() < kMaxHosts) {
      if (const auto gpu = trim(take_until(list, ',')); !gpu.empty() && gpu != "-") {
        gpus.emplace(host, gpu);
      }
    }
  }
  return static_cast<std::int64_t>(gpus.size());
}

/// Sets the memory of all hosts: the limit or the reservation, which were asked for; else what was
/// used, divided by the efficiency with which LSF says it was used; else 0.
void set_memory(BatchJob& job,
                std::string_view limit,
                std::string_view requirement,
                std::string_view used,
                std::string_view efficiency) {
  const auto hosts = std::max<std::int64_t>(job.nodes, 1);
  const auto each = jobscript::parse_size(limit, kKibi);
  job.requested_memory_bytes = each && *each > 0
                                   ? *each * static_cast<double>(hosts)
                                   : jobscript::reserved_memory(requirement, hosts, job.cpus);
  job.memory_bytes = job.requested_memory_bytes;
  if (job.memory_bytes > 0) {
    return;
  }
  const double bytes = jobscript::parse_size(used, kMebi).value_or(0);
  if (efficiency.ends_with('%')) {
    efficiency.remove_suffix(1);
  }
  const double percent = parse_double(trim(efficiency)).value_or(0);
  job.memory_bytes = percent > 0 && percent <= 100 ? bytes * 100 / percent : bytes;
}

/// Seconds of a RUNTIMELIMIT: minutes ("60.0", "3.0/hostA"), or "HH:MM:SS" where LSF is configured
/// to print times so. 0 for none and for anything else.
std::int64_t run_limit(std::string_view text) {
  constexpr double kMaxSeconds = 100.0 * 366 * 24 * 3600;
  text = trim(text.substr(0, text.find('/')));
  double seconds = 0;
  if (text.find(':') == std::string_view::npos) {
    seconds = parse_double(text).value_or(0) * 60;
  } else {
    for (int parts = 0; parts < 3; ++parts) {
      const auto part = parse_int<std::int64_t>(take_until(text, ':'));
      if (!part || *part < 0) {
        return 0;
      }
      seconds = 60 * seconds + static_cast<double>(*part);
    }
    seconds = text.empty() ? seconds : 0;
  }
  return seconds > 0 && seconds <= kMaxSeconds ? static_cast<std::int64_t>(seconds) : 0;
}

bool holds(std::string_view status) {
  return status == "RUN" || status == "USUSP" || status == "SSUSP" || status == "UNKWN" ||
         status == "ZOMBI";
}

/// A line of bacct about something that happened at a time: "Mon Oct  8 17:07:54 2026: text".
struct Event {
  std::optional<std::int64_t> ms;
  std::string_view text;
};
Event event_of(std::string_view line, const Times& times) {
  constexpr std::size_t kMaxTime = 32;
  const std::size_t end = line.substr(0, kMaxTime).find(": ");
  if (end == std::string_view::npos) {
    return {.ms = std::nullopt, .text = {}};
  }
  return {.ms = parse_ctime(line.substr(0, end), times.zone, times.now_ms),
          .text = trim(line.substr(end + 2))};
}

/// The text in "KEY <text>" at the front of `rest`, which must go on with one of ">, " and ">" and
/// the end; takes it and what follows off. Nothing for another key.
std::optional<std::string_view> take_field(std::string_view& rest, std::string_view key) {
  if (!rest.starts_with(key) || !rest.substr(key.size()).starts_with(" <")) {
    return std::nullopt;
  }
  std::string_view value = rest.substr(key.size() + 2);
  std::size_t end = value.find(">, ");
  std::size_t next = end + 3;
  if (end == std::string_view::npos) {
    if (!value.ends_with('>')) {
      return std::nullopt;
    }
    end = value.size() - 1;
    next = value.size();
  }
  rest = value.substr(next);
  return value.substr(0, end);
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// The value of the first field `key` behind the current place.
std::string find_field(std::string_view rest, std::string_view key) {
  const std::string field = std::string(key) + " <";
  const std::size_t at = rest.find(field);
  if (at == std::string_view::npos) {
    return {};
  }
  rest.remove_prefix(at + field.size());
  return std::string(rest.substr(0, rest.find('>')));
}

/// "Job <6>, Job Name <n>, User <u>, Project <p>, ..., Status <DONE>, Queue <q>, ..., Command <c>,
/// Share group charged </u>". A user chooses the job's name, so there must be one ", User <" only.
Result<> take_header(std::string_view line, FinishedJob& finished) {
  BatchJob& job = finished.job;
  const std::string_view whole = line;
  const auto id = take_field(line, "Job");
  if (!id || !is_id(*id)) {
    return fail(ErrorCode::kParse, "expected 'Job <ID>, ...', got '{}'", printable(whole, 100));
  }
  job.id = *id;
  const bool named = line.starts_with("Job Name <");
  const std::string_view user_field = named ? ">, User <" : "User <";
  if (named && count_of(line, user_field) != 1) {
    finished.clear = false;
    return {};
  }
  const std::size_t user = line.find(user_field);
  if (user == std::string_view::npos || (!named && user != 0)) {
    return fail(ErrorCode::kParse, "job {}: expected ', User <', got '{}'", job.id,
                printable(line, 100));
  }
  if (named) {
    constexpr std::string_view kName = "Job Name <";
    job.name = line.substr(kName.size(), user - kName.size());
  }
  std::string_view rest = line.substr(named ? user + 3 : 0);
  job.user = take_field(rest, "User").value_or(std::string_view());
  job.project = take_field(rest, "Project").value_or(std::string_view());
  job.state = find_field(rest, "Status");
  job.group = find_field(rest.substr(0, rest.find("Command <")), "User Group");
  if (const std::string queue = find_field(rest, "Queue"); !queue.empty()) {
    job.tags.emplace_back("queue", queue);
  }
  if (!named) {
    const std::size_t command = rest.find("Command <");
    std::string_view name =
        command == std::string_view::npos ? std::string_view() : rest.substr(command + 9);
    name = name.substr(0, name.find(">, Share group charged <"));
    name = name.ends_with('>') ? name.substr(0, name.size() - 1) : name;
    job.name = name.substr(0, kMaxName);
  }
  return {};
}

/// "Dispatched 4 Task(s) on Host(s) <a> <a> ..., Allocated 4 Slot(s) on Host(s) <a> ..., Effective
/// RES_REQ <...>;", "[1] dispatched to <a>" and similar.
void take_dispatch(std::string_view text, BatchJob& job, std::string& requirement) {
  const std::size_t req = text.find("Effective RES_REQ <");
  if (req != std::string_view::npos) {
    constexpr std::string_view kReq = "Effective RES_REQ <";
    const std::string_view value = text.substr(req + kReq.size());
    requirement = trim(value.substr(0, value.rfind('>')));
    text = text.substr(0, req);
  }
  constexpr std::string_view kAllocated = "Allocated ";
  std::optional<std::int64_t> slots;
  if (const std::size_t at = text.find(kAllocated); at != std::string_view::npos) {
    text.remove_prefix(at + kAllocated.size());
    std::string_view number = text;
    slots = parse_int<std::int64_t>(take_word(number));
  }
  job.hosts.clear();
  std::int64_t counted = 0;
  for (std::size_t open = text.find('<'); open != std::string_view::npos; open = text.find('<')) {
    text.remove_prefix(open + 1);
    counted += add_slots(job, take_until(text, '>'));
  }
  job.cpus = std::clamp<std::int64_t>(slots.value_or(counted), 0, kMaxBatchCount);
  job.nodes = static_cast<std::int64_t>(job.hosts.size());
}

/// "Completed <done>." or "Completed <exit>; TERM_OWNER: job killed by owner.".
void take_end(std::string_view text, BatchJob& job) {
  const std::string status = find_field(text, "Completed");
  job.tags.emplace_back("exit_status", status);
  const std::size_t reason = text.find("TERM_");
  if (reason != std::string_view::npos) {
    text.remove_prefix(reason);
    job.tags.emplace_back("exit_reason", text.substr(0, text.find_first_of(":;. ")));
  }
  if (job.state.empty()) {
    job.state = status == "done" ? "DONE" : "EXIT";
  }
}

/// Rows "HOST TASK GPU_ID GI_PLACEMENT/SIZE CI_PLACEMENT/SIZE ..."; the host is missing in rows
/// after its first. GPUs and instances that several tasks use count once.
class GpuTable {
 public:
  /// False at the end of the table.
  bool add(std::string_view line) {
    if (trim(line).empty()) {
      return rows_ == 0;
    }
    const bool has_host = line.starts_with(' ') && !line.starts_with("  ");
    std::string_view rest = line;
    if (has_host) {
      host_ = take_word(rest);
    }
    if (host_ == "HOST") {
      return true;  // the heading
    }
    static_cast<void>(take_word(rest));  // task
    const std::string gpu(take_word(rest));
    const std::string place = std::string(take_word(rest)) + "/" + std::string(take_word(rest));
    if (!is_number(gpu, kMaxIdDigits) || gpus_.size() >= kMaxHosts) {
      return false;
    }
    ++rows_;
    gpus_.insert(host_ + "/" + gpu + "/" + place);
    return true;
  }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(gpus_.size()); }

 private:
  std::string host_;
  std::size_t rows_ = 0;
  std::set<std::string> gpus_;
};

/// The value below a column of the accounting table, if both rows have as many words.
std::string below(std::string_view heading, std::string_view values, std::string_view column) {
  std::string found;
  for (std::string_view name = take_word(heading); !name.empty(); name = take_word(heading)) {
    const std::string_view value = take_word(values);
    if (name == column) {
      found = value;
    }
  }
  return trim(values).empty() ? found : std::string();
}

}  // namespace

Result<std::optional<RunningJob>> parse_running(std::string_view json_text, const Times& times) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  options.allow_invalid_utf8 = true;  // in job names; cleaned before they are stored
  boost::system::error_code error;
  const json::value value =
      json::parse(json::string_view(json_text.data(), json_text.size()), error, {}, options);
  const json::object* const record = value.if_object();
  if (error || record == nullptr) {
    return fail(ErrorCode::kParse, "record of bjobs: {}: '{}'",
                error ? error.message() : "expected an object", printable(json_text, 80));
  }
  const std::string id = text_of(*record, "JOBID");
  if (record->contains("ERROR")) {
    return std::nullopt;
  }
  if (!is_number(id, kMaxIdDigits)) {
    return fail(ErrorCode::kParse, "record of bjobs: invalid JOBID '{}'", printable(id, 40));
  }
  RunningJob running;
  BatchJob& job = running.job;
  job.id = id;
  if (const std::string index = text_of(*record, "JOBINDEX");
      is_number(index, kMaxIdDigits) && index != "0") {
    job.id += '[' + index + ']';
  }
  job.user = text_of(*record, "USER");
  job.group = text_of(*record, "USER_GROUP");
  job.name = text_of(*record, "JOB_NAME");
  job.project = text_of(*record, "PROJ_NAME");
  job.state = text_of(*record, "STAT");
  job.running_state = "RUN";
  job.submit_ms =
      parse_ctime(text_of(*record, "SUBMIT_TIME"), times.zone, times.now_ms).value_or(0);
  const std::string start = text_of(*record, "START_TIME");
  const auto start_ms = parse_ctime(start, times.zone, times.now_ms);
  running.holds = holds(job.state);
  if (running.holds && !start_ms) {
    return fail(ErrorCode::kParse, "job {}: invalid START_TIME '{}'", job.id, printable(start, 40));
  }
  job.start_ms = start_ms.value_or(0);
  if (job.state == "DONE" || job.state == "EXIT") {
    const std::string end = text_of(*record, "FINISH_TIME");
    job.end_ms = parse_ctime(end, times.zone, times.now_ms).value_or(0);
  }
  const std::string slots = text_of(*record, "ALLOC_SLOT");
  std::int64_t counted = 0;
  for (std::string_view rest = slots; !rest.empty();) {
    if (const auto slot = trim(take_until(rest, ':')); !slot.empty() && slot != "-") {
      counted += add_slots(job, slot);
    }
  }
  job.nodes = static_cast<std::int64_t>(job.hosts.size());
  job.cpus = std::clamp<std::int64_t>(
      parse_int<std::int64_t>(text_of(*record, "NALLOC_SLOT")).value_or(counted), 0,
      kMaxBatchCount);
  const std::string gpus = text_of(*record, "GPU_ALLOC");
  job.gpus = std::clamp<std::int64_t>(
      parse_int<std::int64_t>(text_of(*record, "GPU_NUM")).value_or(count_gpus(gpus)), 0,
      kMaxBatchCount);
  const std::string requirement = text_of(*record, "EFFECTIVE_RESREQ");
  set_memory(job, text_of(*record, "MEMLIMIT"), requirement, text_of(*record, "MEM"),
             text_of(*record, "MEM_EFFICIENCY"));
  job.time_limit_seconds = run_limit(text_of(*record, "RUNTIMELIMIT"));
  job.tags = {{"exit_status", ""},
              {"queue", text_of(*record, "QUEUE")},
              {"res_req", std::string(trim(requirement))},
              {"workdir", text_of(*record, "EXEC_CWD")}};
  return running;
}

Result<std::optional<FinishedJob>> parse_finished(const std::vector<std::string>& lines,
                                                  const Times& times) {
  FinishedJob finished;
  BatchJob& job = finished.job;
  if (lines.empty()) {
    return fail(ErrorCode::kParse, "expected 'Job <ID>, ...', got nothing");
  }
  CEEMS_TRY(take_header(lines.front(), finished));
  // A name with a line end would show the rest of the name in the second line.
  if (lines.size() < 2 || !event_of(lines[1], times).ms) {
    finished.clear = false;
  }
  std::string requirement;
  std::string directory;
  std::string used;
  std::string efficiency;
  std::optional<GpuTable> gpus;
  bool in_table = false;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (trim(line) == "GPU_ALLOCATION:") {
      gpus.emplace();
      in_table = true;
    } else if (in_table && gpus) {
      in_table = gpus->add(line);
    } else if (line.find("CPU_T ") != std::string_view::npos && i + 1 < lines.size()) {
      used = below(line, lines[i + 1], "MEM");
    } else if (trim(line).ends_with("MEM_EFFICIENCY") && i + 1 < lines.size()) {
      const std::string_view values = trim(lines[i + 1]);
      efficiency = values.substr(values.find_last_of(" \t") + 1);
    } else if (const Event event = event_of(line, times); event.ms) {
      const std::string text = to_lower(event.text.substr(0, 64));
      if (text.starts_with("submitted from host")) {
        job.submit_ms = *event.ms;
        directory = find_field(event.text, "CWD");
      } else if (text.starts_with("completed <")) {
        job.end_ms = *event.ms;
        take_end(event.text, job);
      } else if (job.end_ms == 0 &&
                 (text.find("dispatched") != std::string::npos || text.starts_with("started"))) {
        if (job.start_ms == 0 || text.find("dispatched") != std::string::npos) {
          job.start_ms = *event.ms;
          take_dispatch(event.text, job, requirement);
        }
      }
    }
  }
  if (job.end_ms == 0) {
    return fail(ErrorCode::kParse, "job {}: its record has no line 'TIME: Completed <...>'",
                job.id);
  }
  if (job.start_ms == 0) {
    return std::nullopt;  // it never ran
  }
  job.running_state = "RUN";
  job.gpus = gpus ? gpus->count() : 0;
  set_memory(job, "", requirement, used == "-" ? "" : used, efficiency);
  job.tags.emplace_back("res_req", requirement);
  job.tags.emplace_back("workdir", directory);
  return finished;
}

namespace {

/// The number behind "Total number of KIND jobs:".
std::optional<std::size_t> total_of(std::string_view line, std::string_view kind) {
  const std::string text = fmt::format("Total number of {} jobs:", kind);
  const std::size_t at = line.find(text);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(at + text.size());
  return parse_int<std::size_t>(take_word(rest));
}

}  // namespace

void BacctReader::add_line(std::string_view line) {
  constexpr std::size_t kMaxLines = 20'000;
  constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;
  constexpr std::size_t kLeastDashes = 20;
  if (line.starts_with("Job <")) {
    end_record();
    ++records_;
    record_.emplace_back(line);
    bytes_ = line.size();
    return;
  }
  if (const auto done = total_of(line, "done"), exited = total_of(line, "exited"); done && exited) {
    listed_ = *done + *exited;
  }
  const bool separator =
      line.size() >= kLeastDashes && line.find_first_not_of('-') == std::string_view::npos;
  if (separator) {
    end_record();
  } else if (!record_.empty() && record_.size() < kMaxLines && bytes_ < kMaxBytes) {
    record_.emplace_back(line);
    bytes_ += line.size();
  }
}

void BacctReader::end_record() {
  if (record_.empty()) {
    return;
  }
  auto job = parse_finished(record_, times_);
  record_.clear();
  if (!job) {
    if (malformed_++ == 0) {
      first_problem_ = job.error().message;
    }
  } else if (std::optional<FinishedJob>& found = *job) {
    job_(*std::move(found));
  }
}

void BacctReader::finish() {
  end_record();
}

}  // namespace ceems::ingest::lsf
