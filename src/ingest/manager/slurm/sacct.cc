#include "ingest/manager/slurm/sacct.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/time/time_text.h"
#include "base/time/time_zone.h"
#include "base/utf8.h"
#include "ingest/manager/complaint.h"

namespace ceems::ingest {
namespace {

constexpr std::size_t kMaxRecordBytes = 1U << 20U;

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
using Details = std::map<std::string_view, std::string_view>;  // by name of the field

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

bool split_fields(std::string_view record,
                  std::string_view delimiter,
                  std::span<const std::string_view> names,
                  Fields& fields,
                  Details& details) {
  for (std::size_t i = kJobId; i < kJobName + names.size(); ++i) {
    const std::size_t end = record.find(delimiter);
    if (end == std::string_view::npos) {
      return false;
    }
    (i < kJobName ? fields.at(i) : details[names[i - kJobName]]) = record.substr(0, end);
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

/// "12_3" is task 3 of the array 12, "12+1" part 1 of the heterogeneous job 12.
void read_group(std::string_view id, SlurmDetails& details) {
  const bool het = id.find('+') != std::string_view::npos;
  const auto job = parse_int<std::int64_t>(take_until(id, het ? '+' : '_'));
  const auto place = parse_int<std::int64_t>(id);
  if (job && place && *job > 0 && *place >= 0) {
    (het ? details.het_job : details.array_job) = job;
    (het ? details.het_offset : details.array_task) = place;
  }
}

std::optional<std::int64_t> count_of_text(std::string_view text) {
  const auto count = parse_int<std::int64_t>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

/// The type of GPUs in ReqTRES; "" for none, and for several.
std::string only_gpu_type(std::string_view tres) {
  std::string found;
  for (const std::string_view part : split(tres, ',')) {
    const std::string_view type = gpu_type_of(part.substr(0, part.find('=')));
    if (!type.empty() && !found.empty()) {
      return {};
    }
    found += type;
  }
  return found;
}

void read_details(const Details& texts, SlurmJob& job) {
  const auto text = [&texts](std::string_view name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string_view() : trim(found->second);
  };
  SlurmDetails& details = job.details;
  read_group(text("jobid"), details);
  details.time_limit_seconds = limit_seconds(parse_int<std::int64_t>(text("timelimitraw")));
  if (const auto cpus = count_of_text(text("reqcpus")); cpus && *cpus > 0) {
    details.requested_cpus = cpus;
  }
  if (const auto nodes = count_of_text(text("nnodes")); nodes && job.allocation.nodes == 0) {
    job.allocation.nodes = *nodes;
  }
  const Allocation requested = parse_alloc_tres(text("reqtres"), MemoryRule::kExact);
  details.requested_memory_bytes =
      requested.memory_bytes > 0
          ? std::optional(requested.memory_bytes)
          : parse_requested_memory(text("reqmem"), details.requested_cpus, job.allocation.nodes);
  details.memory_per = memory_per(text("reqmem"));
  details.gpu_type = only_gpu_type(text("reqtres"));
  details.restarts = count_of_text(text("restarts"));
  details.eligible_ms = parse_time(text("eligible"));
  details.consumed_joules = consumed_energy(text("consumedenergyraw"));
  details.sluid = text("sluid");
  details.constraints = text("constraints");
  details.submit_line = text("submitline");
  details.js1 = js1_of(text("admincomment"));
}

}  // namespace

std::vector<std::string_view> listed_details(std::string_view help) {
  const std::string lower = to_lower(help);
  std::set<std::string_view> words;
  for (std::string_view rest = lower; !rest.empty();) {
    const std::size_t begin = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
    rest.remove_prefix(begin);
    const std::size_t length = std::min(rest.find_first_of(" \t\r\n"), rest.size());
    words.insert(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  std::vector<std::string_view> found;
  if (words.contains("jobidraw") && words.contains("nodelist") && words.contains("workdir")) {
    std::ranges::copy_if(kSacctDetails, std::back_inserter(found),
                         [&](std::string_view name) { return words.contains(name); });
  }
  return found;
}

std::string sacct_format(std::span<const std::string_view> details) {
  std::string format(kSacctFields);
  const std::size_t name = format.rfind("jobname");
  std::string more;
  for (const std::string_view detail : details) {
    more.append(detail).append(",");
  }
  return format.insert(name, more);
}

Result<std::optional<SlurmJob>> parse_sacct_record(std::string_view record,
                                                   std::string_view delimiter,
                                                   MemoryRule rule,
                                                   std::span<const std::string_view> details) {
  Fields fields;
  Details more;
  if (!split_fields(record, delimiter, details, fields, more)) {
    return fail(ErrorCode::kParse, "expected {} fields, got {}: '{}'",
                kSacctFieldCount + details.size(), count_of(record, delimiter) + 1,
                printable(record, 100));
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
  read_details(more, job);
  return job;
}

void SacctReader::add_line(std::string_view line) {
  if (!decided_) {
    if (line.empty()) {
      return;
    }
    joins_lines_ = line.find(delimiter_) != std::string_view::npos;
    decided_ = joins_lines_ || count_of(line, "|") >= delimiters_;
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
  if (in_line >= delimiters_ || (record_delimiters_ >= delimiters_ && in_line > 0) ||
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
  auto job = parse_sacct_record(record_, delimiter_, rule_, details_);
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

constexpr std::size_t kMaxHelpBytes = 1U << 20U;
/// The command of a job may be as long as the kernel allows (2 MiB), before SLURM escapes it, and a
/// script has 4 MB by default. One line must not stop the rest.
constexpr std::size_t kMaxSacctLine = std::size_t{16} << 20U;
constexpr std::chrono::seconds kLimitsTime{10};

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

  Result<> scripts(const std::vector<std::string>& ids,
                   std::chrono::milliseconds timeout,
                   const std::function<void(std::string_view)>& line,
                   const std::stop_token& stop) override {
    std::vector<std::string> arguments = {"--batch-script", "-X", "--allusers", "--jobs",
                                          fmt::format("{}", fmt::join(ids, ","))};
    if (!options_.slurm_cluster.empty()) {
      arguments.push_back("--clusters=" + options_.slurm_cluster);
    }
    return run("sacct", std::move(arguments), line, stop, timeout);
  }

  Result<std::optional<PartitionLimits>> limits(const std::stop_token& stop) override {
    std::error_code failed;
    if (!std::filesystem::exists(options_.directory / "scontrol", failed)) {
      return std::nullopt;
    }
    PartitionLimits found;
    const auto read = [&](const char* what, auto add) {
      std::vector<std::string> arguments = {"--all", "--oneliner", "show", what};
      if (!options_.slurm_cluster.empty()) {
        arguments.insert(arguments.begin(), "--clusters=" + options_.slurm_cluster);
      }
      return run("scontrol", std::move(arguments), add, stop, kLimitsTime);
    };
    CEEMS_TRY(read("config", [&](std::string_view line) { found.add_config_line(line); }));
    CEEMS_TRY(read("partition", [&](std::string_view line) { found.add_partition_line(line); }));
    CEEMS_TRY(read("node", [&](std::string_view line) { found.add_node_line(line); }));
    if (found.empty()) {
      return fail(ErrorCode::kNoData, "scontrol lists no partitions");
    }
    return found;
  }

  Result<std::optional<AccountLimits>> account_limits(const std::string& cluster,
                                                      const std::stop_token& stop) override {
    const std::string& name = options_.slurm_cluster.empty() ? cluster : options_.slurm_cluster;
    if (name.empty()) {
      return fail(ErrorCode::kNoData, "scontrol does not say the name of the cluster");
    }
    AccountLimits found;
    const auto read = [&](std::vector<std::string> what, auto add) {
      what.insert(what.begin(), {"--parsable2", "--noheader", "list"});
      return run("sacctmgr", std::move(what), add, stop, kLimitsTime);
    };
    CEEMS_TRY(read({"qos", std::string(AccountLimits::kQosFormat)},
                   [&](std::string_view line) { found.add_qos_line(line); }));
    CEEMS_TRY(read({"associations", "WOPLimits", std::string(AccountLimits::kAssociationFormat),
                    "cluster=" + name},
                   [&](std::string_view line) { found.add_association_line(line); }));
    if (found.empty()) {
      return no_associations("sacctmgr", name);
    }
    return found;
  }

  Result<std::set<Membership>> associations(std::stop_token stop) override {
    std::set<Membership> found;
    std::vector<std::string> arguments = {"--parsable2", "--noheader", "list", "associations",
                                          "format=Account,User"};
    if (!options_.slurm_cluster.empty()) {
      arguments.push_back("cluster=" + options_.slurm_cluster);
    }
    bool any = false;
    CEEMS_TRY(run(
        "sacctmgr", std::move(arguments),
        [&](std::string_view line) {
          any = any || !trim(line).empty();
          add_association_line(line, found);
        },
        std::move(stop)));
    if (!any) {
      return no_associations("sacctmgr", options_.slurm_cluster);
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
    CEEMS_TRY(find_details(stop));
    const std::vector<std::string_view> details =
        details_.value_or(std::vector<std::string_view>{});
    SacctReader reader(delimiter, options_.memory, job, details);
    std::vector<std::string> arguments = {
        "-D", "-X", "--noheader", "--allusers", "--parsable2", "--format", sacct_format(details)};
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
      details_.reset();  // another version may be installed now
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

  /// Asks sacct once which of its fields it has. If it ends with an error the details are left out,
  /// and the next call asks again. Other errors are those that asking for jobs would have, too.
  Result<> find_details(std::stop_token stop) {
    if (details_) {
      return {};
    }
    std::string help;
    const auto done = run(
        "sacct", {"--helpformat"},
        [&help](std::string_view line) {
          help.append(line).append("\n");
          help.resize(std::min(help.size(), kMaxHelpBytes));
        },
        std::move(stop));
    if (!done && done.error().code != ErrorCode::kUnavailable) {
      return done;
    }
    if (done) {
      details_ = listed_details(help);
      if (!options_.reads_js1) {
        std::erase(*details_, kJs1Detail);
      }
    } else {
      log::debug("fields of sacct cannot be listed",
                 {{"cluster_id", options_.cluster_id}, {"err", done.error().message}});
    }
    return {};
  }

  /// Any exit status except 0 is an error, because the output may be incomplete.
  Result<> run(const char* program,
               std::vector<std::string> arguments,
               const std::function<void(std::string_view)>& line,
               std::stop_token stop,
               std::chrono::milliseconds at_most = std::chrono::milliseconds::max()) {
    os::Command command;
    command.path = (options_.directory / program).string();
    if (options_.mode == SlurmMode::kSudo) {
      arguments.insert(arguments.begin(), {"-n", "-E", command.path});
      command.path = options_.sudo;
    }
    command.arguments = std::move(arguments);
    command.environment = options_.environment;
    command.timeout = std::min(at_most, options_.timeout);
    command.max_output_bytes = kMaxSacctLine;
    command.as_root = options_.mode == SlurmMode::kCapability;
    command.only_trusted = command.as_root;
    CEEMS_TRY_IN(program, result,
                 runner_.run_lines(
                     command,
                     [&line](std::string_view text) -> Result<> {
                       line(text);
                       return {};
                     },
                     std::move(stop)));
    const std::string problem = printable(trim(result.error_text), 300);
    // A command that cannot reach the database may say so and end with 0.
    // Complaints about slurm.conf come with every command and concern no output.
    if (result.exit_status != 0 ||
        complains(result.error_text, {}, {"_parse_next_key", "s_p_parse", "deprecated"})) {
      return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", program, result.exit_status,
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
  std::optional<std::vector<std::string_view>> details_;  ///< nothing: not known yet
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
