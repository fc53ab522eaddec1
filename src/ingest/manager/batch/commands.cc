#include "ingest/manager/batch/commands.h"

#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "config/section.h"
#include "ingest/manager/command_directory.h"
#include "ingest/manager/complaint.h"

namespace ceems::ingest {
namespace {

/// A job's command and its environment may be long. One line must not stop the rest.
constexpr std::size_t kMaxCommandBytes = std::size_t{16} << 20U;

}  // namespace

Result<> read_batch_options(const config::Node& extra, BatchOptions& options) {
  config::Section section(extra);
  std::string members = "jobs";
  section.duration("command_timeout", options.timeout)
      .text("time_zone", options.time_zone)
      .text("members", members)
      .refuse(options.timeout.count() <= 0, "command_timeout", "must be more than 0s")
      .refuse(members != "jobs" && members != "none", "members", "expected jobs or none");
  if (auto zone = TimeZone::find(options.time_zone); !zone) {
    section.refuse(true, "time_zone", zone.error().message);
  }
  options.members = members == "jobs";
  return section.done();
}

Result<BatchCommands> BatchCommands::create(const ClusterConfig& config,
                                            const BatchOptions& options,
                                            std::string_view program,
                                            const std::map<std::string, std::string>& environment,
                                            os::CommandRunner& runner) {
  BatchCommands commands(runner, config.cluster.id);
  commands.environment_ = os::process_environment();
  commands.timeout_ = options.timeout;
  CEEMS_TRY_IN("cluster " + config.cluster.id, directory,
               command_directory(config, program, commands.environment_["PATH"]));
  commands.directory_ = std::move(directory);
  CEEMS_TRY_IN("cluster " + config.cluster.id, zone, TimeZone::find(options.time_zone));
  commands.zone_ = zone;
  commands.environment_["LC_ALL"] = "C";
  for (const auto& [name, value] : environment) {
    commands.environment_[name] = value;
  }
  for (const auto& [name, value] : config.cli_environment) {
    commands.environment_[name] = value;
  }
  if (options.time_zone.empty()) {
    commands.environment_["TZ"] = "UTC";
  }
  return commands;
}

Result<> BatchCommands::run(const std::string& program,
                            std::vector<std::string> arguments,
                            const Line& line,
                            const std::stop_token& stop,
                            std::string_view nothing) {
  os::Command command;
  command.path = (directory_ / program).string();
  command.arguments = std::move(arguments);
  command.environment = environment_;
  command.timeout = timeout_;
  command.max_output_bytes = kMaxCommandBytes;
  CEEMS_TRY_IN(program, result, runner_->run_lines(command, line, stop));
  const std::string_view message = trim(result.error_text);
  const bool none = !nothing.empty() && message.find(nothing) != std::string_view::npos;
  const std::string problem = printable(message, 300);
  const bool incomplete =
      result.exit_status != 0 ||
      complains(result.error_text,
                {program + ": ", "failed in an lsf library call", "communication time out",
                 "connection refused", "cannot connect to server"},
                {"unknown job id", "job has finished", "please wait", "still trying"});
  if (incomplete && !none) {
    return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", program, result.exit_status,
                problem.empty() ? "no message" : problem);
  }
  const bool noted = !problem.empty() && !none;
  if (changed(program, noted)) {
    if (noted) {
      log::warn("message of a command of the batch system",
                {{"cluster_id", cluster_id_}, {"command", program}, {"text", problem}});
    } else {
      log::info("no more messages of a command of the batch system",
                {{"cluster_id", cluster_id_}, {"command", program}});
    }
  }
  return {};
}

void BatchCommands::note_left_out(const std::string& program,
                                  std::size_t records,
                                  const std::string& first) {
  if (!changed("records of " + program, records > 0)) {
    return;
  }
  if (records > 0) {
    log::warn("records of the batch system left out", {{"cluster_id", cluster_id_},
                                                       {"command", program},
                                                       {"records", records},
                                                       {"first", first}});
  } else {
    log::info("records of the batch system are all readable again",
              {{"cluster_id", cluster_id_}, {"command", program}});
  }
}

Result<> BatchCommands::note_left_out(const std::string& program, const JsonCutter& cutter) {
  if (cutter.taken() == 0 && cutter.malformed() > 0) {
    return fail(ErrorCode::kParse, "output of {}: {}", program, cutter.first_problem());
  }
  note_left_out(program, cutter.malformed(), cutter.first_problem());
  return {};
}

/// Returns whether the trouble began or ended with this call.
bool BatchCommands::changed(const std::string& trouble, bool there) {
  return there ? troubles_.insert(trouble).second : troubles_.erase(trouble) > 0;
}

}  // namespace ceems::ingest
