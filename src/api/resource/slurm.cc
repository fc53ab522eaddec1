#include "api/resource/slurm.h"

#include <linux/capability.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "api/resource/sacct.h"
#include "base/log.h"
#include "base/strings.h"
#include "os/privileges.h"
#include "store/time_zone.h"

namespace ceems::api {
namespace {

constexpr std::chrono::seconds kSudoProbeTimeout{5};
constexpr std::chrono::minutes kDefaultTimeout{5};
constexpr std::size_t kMaxLineBytes = 1U << 20U;

/// The variables of this process, which commands inherit as they would from a shell (SLURM_CONF,
/// LD_LIBRARY_PATH, ...).
std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

/// A separator that no job can have put into its name, because it did not exist before.
std::string fresh_delimiter() {
  std::random_device random;
  return fmt::format("|{:08x}{:08x}|", random(), random());
}

/// "2026-01-31T23:59:59" in UTC. sacct reads it in the zone of TZ, which we set; UTC has no hour
/// that comes twice.
std::string utc_text(std::int64_t epoch_ms) {
  return store::TimeZone().local(epoch_ms);
}

class SlurmManager final : public ResourceManager {
 public:
  SlurmManager(std::string cluster_id,
               std::filesystem::path directory,
               SlurmMode mode,
               std::string sudo,
               std::map<std::string, std::string> environment,
               std::chrono::milliseconds timeout,
               store::TimeZone zone,
               os::CommandRunner& runner)
      : cluster_id_(std::move(cluster_id)),
        directory_(std::move(directory)),
        mode_(mode),
        sudo_(std::move(sudo)),
        environment_(std::move(environment)),
        timeout_(timeout),
        zone_(zone),
        runner_(runner) {}

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    const std::string delimiter = fresh_delimiter();
    SacctReader reader(delimiter);
    auto done = run(
        "sacct",
        {"-D", "-X", "--noheader", "--allusers", "--parsable2", "--format",
         std::string(kSacctFields), "--state", std::string(kSacctStates), "--starttime",
         utc_text(window.start_ms), "--endtime", utc_text(window.end_ms),
         "--delimiter=" + delimiter},
        [&reader](std::string_view line) -> Result<> {
          reader.add_line(line);
          return {};
        },
        std::move(stop));
    if (!done) {
      return fail(std::move(done).error());
    }
    auto jobs = reader.finish();
    if (!jobs) {
      return fail(std::move(jobs).error());
    }
    if (reader.malformed() > 0) {
      log::warn("lines of sacct left out", {{"cluster_id", cluster_id_},
                                            {"lines", reader.malformed()},
                                            {"first", reader.first_problem()}});
    }
    std::vector<model::Unit> units;
    units.reserve(jobs->size());
    for (const auto& job : *jobs) {
      if (auto unit = to_unit(job, window, zone_, cluster_id_)) {
        units.push_back(std::move(*unit));
      }
    }
    return units;
  }

  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token stop) override {
    Associations associations;
    auto done = run(
        "sacctmgr", {"--parsable2", "--noheader", "list", "associations", "format=Account,User"},
        [&associations](std::string_view line) -> Result<> {
          associations.add_line(line);
          return {};
        },
        std::move(stop));
    if (!done) {
      return fail(std::move(done).error());
    }
    UsersAndProjects result;
    for (const auto& [user, accounts] : associations.accounts_of_users()) {
      result.users.push_back({.uid = {},
                              .cluster_id = cluster_id_,
                              .resource_manager = "slurm",
                              .name = user,
                              .projects = accounts,
                              .tags = {}});
    }
    for (const auto& [account, users] : associations.users_of_accounts()) {
      result.projects.push_back({.uid = {},
                                 .cluster_id = cluster_id_,
                                 .resource_manager = "slurm",
                                 .name = account,
                                 .users = users,
                                 .tags = {}});
    }
    return result;
  }

 private:
  /// Anything but exit status 0 is an error: what came before may be incomplete.
  Result<> run(const char* program,
               std::vector<std::string> arguments,
               const std::function<Result<>(std::string_view)>& line,
               std::stop_token stop) {
    os::Command command;
    command.path = (directory_ / program).string();
    if (mode_ == SlurmMode::kSudo) {
      arguments.insert(arguments.begin(), {"-n", "-E", command.path});
      command.path = sudo_;
    }
    command.arguments = std::move(arguments);
    command.environment = environment_;
    command.timeout = timeout_;
    command.max_output_bytes = kMaxLineBytes;
    command.as_root = mode_ == SlurmMode::kCapability;
    auto result = runner_.run_lines(command, line, std::move(stop));
    if (!result) {
      return fail(std::move(result).error().with_context(program));
    }
    const std::string problem = printable(trim(result->error_text), 300);
    if (result->exit_status != 0) {
      return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", program, result->exit_status,
                  problem.empty() ? "no message" : problem);
    }
    if (!problem.empty()) {
      log::warn("message of a SLURM command",
                {{"cluster_id", cluster_id_}, {"command", program}, {"text", problem}});
    }
    return {};
  }

  std::string cluster_id_;
  std::filesystem::path directory_;
  SlurmMode mode_;
  std::string sudo_;
  std::map<std::string, std::string> environment_;
  std::chrono::milliseconds timeout_;
  store::TimeZone zone_;
  os::CommandRunner& runner_;
};

/// Directory with sacct: `cli.path`, or where PATH finds it.
Result<std::filesystem::path> command_directory(const ClusterConfig& config,
                                                const std::string& search_path) {
  if (config.cli_path.empty()) {
    auto sacct = os::find_program("sacct", search_path);
    if (!sacct) {
      return fail(std::move(sacct).error().with_context("cli.path is not set"));
    }
    return std::filesystem::path(*sacct).parent_path();
  }
  std::error_code error;
  if (!std::filesystem::exists(config.cli_path, error)) {
    return fail(errno_error(error ? error.value() : ENOENT, "stat " + config.cli_path));
  }
  std::filesystem::path directory = std::filesystem::absolute(config.cli_path, error);
  if (error) {
    return fail(errno_error(error.value(), "cli.path " + config.cli_path));
  }
  return directory;
}

bool sudo_works(os::CommandRunner& runner,
                const std::string& sudo,
                const std::filesystem::path& directory,
                const std::map<std::string, std::string>& environment) {
  os::Command probe;
  probe.path = sudo;
  probe.arguments = {"-n", "-E", (directory / "sacct").string(), "--help"};
  probe.environment = environment;
  probe.timeout = kSudoProbeTimeout;
  const auto result = runner.run(probe);
  return result && result->exit_status == 0;
}

}  // namespace

Result<std::unique_ptr<ResourceManager>> create_slurm(const ClusterConfig& config,
                                                      const ManagerContext& context,
                                                      bool may_become_root) {
  const std::string& id = config.cluster.id;
  if (auto known = config.extra.only_keys({"command_timeout"}); !known) {
    return fail(std::move(known).error());
  }
  std::chrono::milliseconds timeout = kDefaultTimeout;
  if (const auto node = config.extra["command_timeout"]; node.present()) {
    auto value = node.as_duration_ms();
    if (!value) {
      return fail(std::move(value).error());
    }
    if (*value <= 0) {
      return fail(node.error("must be more than 0s"));
    }
    timeout = std::chrono::milliseconds(*value);
  }
  auto zone = store::TimeZone::find(context.time_zone);
  if (!zone) {
    return fail(std::move(zone).error());
  }
  auto environment = process_environment();
  const std::string search_path = environment["PATH"];
  auto directory = command_directory(config, search_path);
  if (!directory) {
    return fail(std::move(directory).error().with_context("cluster " + id));
  }
  for (const auto& [name, value] : config.cli_environment) {
    environment[name] = value;
  }
  environment["TZ"] = "UTC";
  environment["SLURM_TIME_FORMAT"] = "%Y-%m-%dT%H:%M:%S%z";

  SlurmMode mode = SlurmMode::kNative;
  std::string sudo;
  if (may_become_root) {
    mode = SlurmMode::kCapability;
  } else if (auto found = os::find_program("sudo", search_path);
             found && sudo_works(*context.runner, *found, *directory, environment)) {
    mode = SlurmMode::kSudo;
    sudo = *found;
  } else {
    log::warn("SLURM commands run as the current user; jobs of other users may be missing",
              {{"cluster_id", id}});
  }
  return std::make_unique<SlurmManager>(id, std::move(*directory), mode, std::move(sudo),
                                        std::move(environment), timeout, *zone, *context.runner);
}

ManagerSpec slurm_manager() {
  return {.name = "slurm",
          .create = [](const ClusterConfig& config, const ManagerContext& context) {
            return create_slurm(
                config, context,
                geteuid() == 0 || (os::may_raise(CAP_SETUID) && os::may_raise(CAP_SETGID)));
          }};
}

}  // namespace ceems::api
