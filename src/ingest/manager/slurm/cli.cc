#include "ingest/manager/slurm/cli.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/time/time_zone.h"
#include "base/utf8.h"

namespace ceems::ingest {
namespace {

constexpr std::size_t kMaxLineBytes = 1U << 20U;

/// A separator that no job can have put into its name, because it did not exist before.
std::string fresh_delimiter() {
  std::random_device random;
  return fmt::format("|{:08x}{:08x}|", random(), random());
}

/// "2026-01-31T23:59:59" in UTC. sacct reads it in the zone of TZ, which we set; UTC has no hour
/// that comes twice.
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

  Result<Associations> associations(std::stop_token stop) override {
    Associations found;
    std::vector<std::string> arguments = {"--parsable2", "--noheader", "list", "associations",
                                          "format=Account,User"};
    if (!options_.slurm_cluster.empty()) {
      arguments.push_back("cluster=" + options_.slurm_cluster);
    }
    auto done = run(
        "sacctmgr", std::move(arguments), [&found](std::string_view line) { found.add_line(line); },
        std::move(stop));
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

  /// Anything but exit status 0 is an error: what came before may be incomplete.
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

  /// Whether this trouble began or ended now.
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
