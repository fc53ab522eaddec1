#include "ingest/manager/slurm/sacct.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/time/time_text.h"
#include "base/time/time_zone.h"
#include "base/utf8.h"

namespace ceems::ingest {
namespace {

constexpr std::size_t kMaxRecordBytes = 1U << 20U;
constexpr std::size_t kDelimiters = kSacctFieldCount - 1;

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

/// Returns where "name|dir" is split.
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

/// Parses a time with an offset. SLURM may cut the offset off (22.05 prints 19 characters whatever
/// the format says); the time is then in UTC, the zone that the command was given.
std::optional<std::int64_t> parse_time(std::string_view text) {
  constexpr std::size_t kWithoutOffset = 19;
  std::string full(text);
  if (full.size() == kWithoutOffset) {
    full.append("+0000");
  }
  return parse_localz(full);
}

}  // namespace

Result<std::optional<SlurmJob>> parse_sacct_record(std::string_view record,
                                                   std::string_view delimiter,
                                                   MemoryRule rule) {
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
  SlurmJob job;
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
  job.allocation = parse_alloc_tres(fields[kAllocTres], rule);
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
    joins_lines_ = line.find(delimiter_) != std::string_view::npos;
    decided_ = joins_lines_ || count_of(line, "|") >= kDelimiters;
    if (!joins_lines_ && decided_) {
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
  const std::size_t in_line = count_of(line, delimiter_);
  // Either the line begins a new record, or the current record has all its fields and the line
  // belongs to the next one.
  if (in_line >= kDelimiters || (record_delimiters_ >= kDelimiters && in_line > 0) ||
      record_.size() + line.size() > kMaxRecordBytes) {
    end_record();
  }
  if (!record_.empty()) {
    record_ += '\n';
  }
  record_ += line;
  record_delimiters_ += in_line;
}

void SacctReader::end_record() {
  record_delimiters_ = 0;
  if (record_.empty()) {
    return;
  }
  auto job = parse_sacct_record(record_, delimiter_, rule_);
  record_.clear();
  if (!job) {
    if (malformed_++ == 0) {
      first_problem_ = job.error().message;
    }
    return;
  }
  ++recognized_;
  if (const auto& known = *job; known.has_value()) {
    job_(*known);
  }
}

Result<> SacctReader::finish() {
  end_record();
  if (recognized_ == 0 && malformed_ > 0) {
    return fail(ErrorCode::kParse, "output of sacct: {}", first_problem_);
  }
  return {};
}

namespace {

constexpr std::size_t kMaxLineBytes = 1U << 20U;

/// Returns a delimiter that no job can have in its name, because it is new and random.
std::string fresh_delimiter() {
  std::random_device random;
  return fmt::format("|{:08x}{:08x}|", random(), random());
}

/// Returns "2026-01-31T23:59:59" in UTC. sacct reads it in the zone of TZ, which we set. UTC has no
/// hour that occurs twice.
std::string utc_text(std::int64_t epoch_ms) {
  return TimeZone().local(epoch_ms);
}

class SlurmCli final : public SlurmSource {
 public:
  SlurmCli(SlurmCliOptions options, os::CommandRunner& runner)
      : options_(std::move(options)), runner_(runner) {
    options_.environment["TZ"] = "UTC";
    options_.environment["SLURM_TIME_FORMAT"] = "%Y-%m-%dT%H:%M:%S%z";
  }

  Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) override {
    return sacct({"--state", std::string(kSacctStates), "--starttime", utc_text(window.start_ms),
                  "--endtime", utc_text(window.end_ms)},
                 job, std::move(stop));
  }

  Result<> jobs_by_id(const std::vector<std::string>& ids,
                      const JobSink& job,
                      std::stop_token stop) override {
    std::string list;
    for (const auto& id : ids) {
      list += (list.empty() ? "" : ",") + id;
    }
    return sacct({"--jobs", std::move(list)}, job, std::move(stop));
  }

  Result<std::set<Membership>> associations(std::stop_token stop) override {
    std::set<Membership> found;
    std::vector<std::string> arguments = {"--parsable2", "--noheader", "list", "associations",
                                          "format=Account,User"};
    if (!options_.slurm_cluster.empty()) {
      arguments.push_back("cluster=" + options_.slurm_cluster);
    }
    auto done = run(
        "sacctmgr", std::move(arguments),
        [&found](std::string_view line) { add_association_line(line, found); }, std::move(stop));
    if (!done) {
      return fail(std::move(done).error());
    }
    return found;
  }

  Result<ProjectLeads> coordinators(std::stop_token stop) override {
    ProjectLeads found;
    bool any = false;
    auto done = run(
        "sacctmgr",
        {"--parsable2", "--noheader", "list", "account", "withcoord",
         "format=Account,Coordinators"},
        [&](std::string_view line) { any = add_coordinator_line(line, found) || any; },
        std::move(stop));
    if (done && !any) {
      done = fail(ErrorCode::kNoData, "sacctmgr: no accounts were listed");
    }
    if (!done) {
      return fail(std::move(done).error());
    }
    return found;
  }

 private:
  Result<> sacct(std::vector<std::string> which, const JobSink& job, std::stop_token stop) {
    const std::string delimiter = fresh_delimiter();
    SacctReader reader(delimiter, options_.memory, job);
    std::vector<std::string> arguments = {"-D",
                                          "-X",
                                          "--noheader",
                                          "--allusers",
                                          "--parsable2",
                                          "--format",
                                          std::string(kSacctFields)};
    std::ranges::move(which, std::back_inserter(arguments));
    if (!options_.slurm_cluster.empty()) {
      arguments.push_back("--clusters=" + options_.slurm_cluster);
    }
    arguments.push_back("--delimiter=" + delimiter);
    auto done = run(
        "sacct", std::move(arguments), [&reader](std::string_view line) { reader.add_line(line); },
        std::move(stop));
    if (done) {
      done = reader.finish();
    }
    if (!done) {
      return done;
    }
    if (changed("lines of sacct", reader.malformed() > 0)) {
      if (reader.malformed() > 0) {
        log::warn("lines of sacct left out", {{"cluster_id", options_.cluster_id},
                                              {"lines", reader.malformed()},
                                              {"first", reader.first_problem()}});
      } else {
        log::info("lines of sacct are all readable again", {{"cluster_id", options_.cluster_id}});
      }
    }
    return {};
  }

  /// Any exit status except 0 is an error, because the output may be incomplete.
  Result<> run(const char* program,
               std::vector<std::string> arguments,
               const std::function<void(std::string_view)>& line,
               std::stop_token stop) {
    os::Command command;
    command.path = (options_.directory / program).string();
    if (options_.mode == SlurmMode::kSudo) {
      arguments.insert(arguments.begin(), {"-n", "-E", command.path});
      command.path = options_.sudo;
    }
    command.arguments = std::move(arguments);
    command.environment = options_.environment;
    command.timeout = options_.timeout;
    command.max_output_bytes = kMaxLineBytes;
    command.as_root = options_.mode == SlurmMode::kCapability;
    command.only_trusted = command.as_root;
    auto result = runner_.run_lines(
        command,
        [&line](std::string_view text) -> Result<> {
          line(text);
          return {};
        },
        std::move(stop));
    if (!result) {
      return fail(std::move(result).error().with_context(program));
    }
    const std::string problem = printable(trim(result->error_text), 300);
    if (result->exit_status != 0) {
      return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", program, result->exit_status,
                  problem.empty() ? "no message" : problem);
    }
    if (changed(program, !problem.empty())) {
      if (!problem.empty()) {
        log::warn("message of a SLURM command",
                  {{"cluster_id", options_.cluster_id}, {"command", program}, {"text", problem}});
      } else {
        log::info("no more messages of a SLURM command",
                  {{"cluster_id", options_.cluster_id}, {"command", program}});
      }
    }
    return {};
  }

  /// Returns whether the problem appeared or disappeared with this call.
  bool changed(const char* trouble, bool there) {
    return there ? troubles_.insert(trouble).second : troubles_.erase(trouble) > 0;
  }

  SlurmCliOptions options_;
  os::CommandRunner& runner_;
  std::set<std::string, std::less<>> troubles_;
};

}  // namespace

std::unique_ptr<SlurmSource> make_slurm_cli(SlurmCliOptions options, os::CommandRunner& runner) {
  return std::make_unique<SlurmCli>(std::move(options), runner);
}

void add_association_line(std::string_view line, std::set<Membership>& members) {
  const std::string_view account = take_until(line, '|');
  add_association(account, take_until(line, '|'), members);
}

bool add_coordinator_line(std::string_view line, ProjectLeads& leads) {
  const std::string account = clean_text(take_until(line, '|'));
  for (std::string_view users = take_until(line, '|'); !account.empty() && !users.empty();) {
    const std::string_view user = take_until(users, ',');
    if (!user.empty()) {
      leads[account].push_back(clean_text(user));
    }
  }
  return !account.empty();
}

}  // namespace ceems::ingest
