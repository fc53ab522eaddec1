#include "ingest/manager/slurm/slurm.h"

#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "config/section.h"
#include "ingest/manager/command_directory.h"
#include "ingest/manager/slurm/sacct.h"
#include "ingest/manager/slurm/scripts.h"
#include "ingest/manager/slurm/slurmrest.h"
#include "os/privileges.h"

namespace ceems::ingest {
namespace {

constexpr std::chrono::seconds kSudoProbeTimeout{5};
/// Limits for the ids in one query, for all ids, and for the queries per job. The length of a
/// command line is limited.
constexpr std::size_t kIdsAtOnce = 500;
constexpr std::size_t kMaxIds = 20 * kIdsAtOnce;
constexpr int kMaxAsks = 3;
/// How often the limits of partitions are read, and after an error.
constexpr std::chrono::minutes kLimitsEvery{60};
constexpr std::chrono::minutes kLimitsAgain{10};
/// How long the name of an owner is asked for after the end of a job.
constexpr std::int64_t kAskForNameMs = std::int64_t{24} * 3'600'000;

class SlurmManager final : public ResourceManager {
 public:
  SlurmManager(std::string cluster_id,
               std::unique_ptr<SlurmSource> source,
               TimeZone zone,
               SlurmChoices choices,
               const Clock& clock)
      : cluster_id_(std::move(cluster_id)),
        source_(std::move(source)),
        zone_(zone),
        choices_(choices),
        scripts_(cluster_id_, clock),
        clock_(clock) {}

  /// Asks again for the jobs whose owners had no names when the program was stopped.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): as the base class has it
  void restore_names(std::optional<model::AccountNames> stored) override {
    if (stored) {
      for (const Start& start : stored->without_owner) {
        open_.try_emplace(start);
      }
    }
  }

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    std::erase_if(open_, [window](const auto& entry) {
      return entry.second.reported_ms != 0 && entry.second.reported_ms <= window.start_ms;
    });
    follow(window);
    std::vector<model::Unit> units;
    OpenJobs running;
    OpenJobs missing = open_;
    const auto add = [&](const SlurmJob& job) {
      if (auto unit = unit_of(job, counted(job, window))) {
        const Start start{unit->uuid, unit->started_at_ts};
        missing.erase(start);
        if (is_open(*unit, window) && unit->started_at_ts != 0) {
          running.emplace(start, Open{});
        }
        units.push_back(std::move(*unit));
      }
    };
    read_limits(stop);
    scripts_.begin();
    std::vector<SlurmJob> with_script;
    CEEMS_TRY(source_->jobs(
        window,
        [&](const SlurmJob& job) {
          if (choices_.reads_scripts && with_script.size() < ScriptReader::kMaxJobs &&
              scripts_.wants(job, window)) {
            with_script.push_back(job);
          } else {
            add(job);
          }
        },
        stop));
    scripts_.read(with_script, *source_, stop);
    std::ranges::for_each(with_script, add);
    associations_.reset();
    if (units.empty()) {
      // No job at all may be the truth, or an answer about a cluster that SLURM does not know.
      auto associations = source_->associations(stop);
      if (!associations && associations.error().code == ErrorCode::kNoData) {
        return fail(std::move(associations).error());
      }
      if (associations) {
        associations_ = std::move(*associations);
      }
    }
    ask_for(missing, window, units, stop);
    note_stand_ins(units);
    open_ = std::move(running);
    open_.merge(missing);
    last_ = window;
    return units;
  }

  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token stop) override {
    if (auto known = std::exchange(associations_, std::nullopt)) {
      return users_and_projects(*known);
    }
    CEEMS_TRY(associations, source_->associations(std::move(stop)));
    return users_and_projects(associations);
  }

  Result<ProjectLeads> fetch_leads(const std::stop_token& stop) override {
    return choices_.coordinators_lead ? source_->coordinators(stop) : ProjectLeads{};
  }

 private:
  using Start = std::pair<std::string, std::int64_t>;  // raw id, epoch ms
  struct Open {
    std::int64_t reported_ms = 0;  ///< end of the window that reported the late end; 0: not yet
    int asks = 0;
  };
  using OpenJobs = std::map<Start, Open>;

  static bool is_stand_in(const model::Unit& unit) { return unit.owner_stands_in; }
  /// Whether the job is to be asked for again: it runs, or its owner has no name yet.
  static bool is_open(const model::Unit& unit, model::Window window) {
    return unit.ended_at_ts == 0 ||
           (is_stand_in(unit) && unit.ended_at_ts + kAskForNameMs > window.end_ms);
  }
  /// Limits of one kind, with what was read last.
  template <class Limits>
  struct KnownLimits {
    std::string_view of;
    std::optional<Limits> limits = {};
    bool fails = false;
  };

  /// Reads what a job may ask for. After an error, what was read before stays.
  void read_limits(const std::stop_token& stop) {
    const auto now = clock_.steady_now();
    if (limits_at_ && now < *limits_at_) {
      return;
    }
    bool works = take(source_->limits(stop), partitions_);
    if (partitions_.limits && partitions_.limits->enforces_accounts()) {
      works =
          take(source_->account_limits(partitions_.limits->cluster(), stop), accounts_) && works;
    } else {
      accounts_.limits.reset();
    }
    limits_at_ = now + (works ? kLimitsEvery : kLimitsAgain);
  }

  template <class Limits>
  bool take(Result<std::optional<Limits>> read, KnownLimits<Limits>& known) {
    if (read) {
      known.limits = std::move(*read);
    }
    if (!read && !std::exchange(known.fails, true)) {
      log::warn("cannot read limits; advice does not know them",
                {{"cluster_id", cluster_id_}, {"of", known.of}, {"error", read.error().message}});
    } else if (read && std::exchange(known.fails, false)) {
      log::info("limits can be read again", {{"cluster_id", cluster_id_}, {"of", known.of}});
    }
    return read.has_value();
  }

  void note_stand_ins(const std::vector<model::Unit>& units) {
    const auto count = std::ranges::count_if(units, is_stand_in);
    if (count > 0 && !std::exchange(stand_ins_, true)) {
      log::warn("owners of jobs have no names but numbers; they are asked for again for a day",
                {{"cluster_id", cluster_id_}, {"jobs", count}});
    }
    stand_ins_ = count > 0;
  }

  std::optional<model::Unit> unit_of(const SlurmJob& job, model::Window window) {
    std::string directives = choices_.reads_scripts ? scripts_.directives_of(job) : std::string();
    const bool drops_js1 = !choices_.reads_js1 && !job.details.js1.empty();
    if (directives.empty() && !drops_js1 && !partitions_.limits) {
      return to_unit(job, window, zone_);
    }
    SlurmJob changed = job;
    changed.details.script_options = std::move(directives);
    if (drops_js1) {
      changed.details.js1.clear();
    }
    if (partitions_.limits) {
      partitions_.limits->set(changed);
      if (accounts_.limits) {
        accounts_.limits->set(changed, partitions_.limits->qos_of(changed.partition));
      }
    }
    return to_unit(changed, window, zone_);
  }

  /// Notes what ran at the start of the window if it follows the last one. A window with the same
  /// start as the last one repeats it, because it was not stored.
  void follow(model::Window window) {
    if (last_ && window.start_ms == last_->end_ms) {
      follows_ = true;
      ran_before_.clear();
      for (const auto& [start, open] : open_) {
        ran_before_.insert(start);
      }
    } else if (!last_ || window.start_ms != last_->start_ms) {
      follows_ = false;
    }
  }

  /// Returns the time span that counts for the job. If a job runs at the start of the window but
  /// was not seen at the end of the previous one, its start was recorded late, so it counts from
  /// its start.
  [[nodiscard]] model::Window counted(const SlurmJob& job, model::Window window) const {
    const bool runs_at_start = job.start_ms && *job.start_ms < window.start_ms &&
                               (!job.end_ms || *job.end_ms > window.start_ms);
    if (follows_ && runs_at_start && !ran_before_.contains({job.id, *job.start_ms})) {
      window.start_ms = *job.start_ms;
    }
    return window;
  }

  /// Queries the missing jobs by id and adds their units. Jobs that SLURM does not know are removed
  /// from `missing` after some rounds.
  void ask_for(OpenJobs& missing,
               model::Window window,
               std::vector<model::Unit>& units,
               const std::stop_token& stop) {
    std::vector<std::string> ids;
    for (const auto& [start, open] : missing) {
      if (ids.size() < kMaxIds && (ids.empty() || ids.back() != start.first)) {
        ids.push_back(start.first);
      }
    }
    for (std::size_t at = 0; at < ids.size(); at += kIdsAtOnce) {
      const std::size_t count = std::min(kIdsAtOnce, ids.size() - at);
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<std::string> some(first, first + static_cast<std::ptrdiff_t>(count));
      auto found = ask_for_some(some, missing, window, stop);
      if (!found) {
        // The window is complete without them; the next round queries them again.
        note_failure(found.error().message);
        return;
      }
      count_asks(some, missing);
      for (auto& unit : *found) {
        missing[{unit.uuid, unit.started_at_ts}] = {
            .reported_ms = is_open(unit, window) ? 0 : window.end_ms, .asks = 0};
        units.push_back(std::move(unit));
      }
    }
    note_failure({});
    const std::size_t lost =
        std::erase_if(missing, [](const auto& entry) { return entry.second.asks >= kMaxAsks; });
    if (lost > 0) {
      log::warn("SLURM no longer knows jobs that were running; they stay as last seen",
                {{"cluster_id", cluster_id_}, {"jobs", lost}});
    }
  }

  Result<std::vector<model::Unit>> ask_for_some(const std::vector<std::string>& ids,
                                                const OpenJobs& missing,
                                                model::Window window,
                                                const std::stop_token& stop) {
    std::vector<model::Unit> found;
    CEEMS_TRY(source_->jobs_by_id(
        ids,
        [&](const SlurmJob& job) {
          if (!missing.contains({job.id, job.start_ms.value_or(0)})) {
            return;  // another run of the job, or another task of the array
          }
          if (auto unit = unit_of(job, window)) {
            found.push_back(std::move(*unit));
          }
        },
        stop));
    return found;
  }

  static void count_asks(const std::vector<std::string>& ids, OpenJobs& missing) {
    for (const auto& id : ids) {
      for (auto open = missing.lower_bound({id, 0});
           open != missing.end() && open->first.first == id; ++open) {
        ++open->second.asks;
      }
    }
  }

  void note_failure(const std::string& message) {
    if (!message.empty() && !asking_fails_) {
      log::warn("cannot query jobs that ended late",
                {{"cluster_id", cluster_id_}, {"error", message}});
    } else if (message.empty() && asking_fails_) {
      log::info("jobs that ended late can be queried again", {{"cluster_id", cluster_id_}});
    }
    asking_fails_ = !message.empty();
  }

  std::string cluster_id_;
  std::unique_ptr<SlurmSource> source_;
  TimeZone zone_;
  const SlurmChoices choices_;
  ScriptReader scripts_;
  const Clock& clock_;
  KnownLimits<PartitionLimits> partitions_{.of = "partitions"};
  KnownLimits<AccountLimits> accounts_{.of = "QOS and associations"};
  std::optional<Clock::SteadyTime> limits_at_;  ///< when they are read next
  /// Running when last seen, or reported as ended in a window that may not be stored.
  OpenJobs open_;
  bool asking_fails_ = false;
  bool stand_ins_ = false;                            ///< some owners are numbers; logged once
  std::optional<std::set<Membership>> associations_;  ///< read for the units of this window
  std::optional<model::Window> last_;                 ///< the last one fetched, stored or not
  bool follows_ = false;        ///< the current window begins where the last one ended
  std::set<Start> ran_before_;  ///< what ran when the current window began
};

/// extra_config of the cluster.
struct SlurmOptions {
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};
  bool exact_memory = false;
  bool coordinators_lead = false;
  bool read_js1 = false;
  bool read_scripts = false;
  std::string slurm_cluster = {};
  std::string api = "cli";
  std::string rest_version = {};
  std::string rest_socket = {};
  std::chrono::milliseconds rest_page{std::chrono::hours(1)};
};

/// Rejects names that sacct would read as options, lists or patterns.
bool is_cluster_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                  c == '.';
         });
}

bool is_api_version(std::string_view text) {
  return text.starts_with("v0.0.") && parse_int(text.substr(5)).has_value();
}

Result<SlurmOptions> read_slurm_options(const config::Node& extra) {
  SlurmOptions options;
  config::Section section(extra);
  section.duration("command_timeout", options.timeout)
      .boolean("exact_memory", options.exact_memory)
      .boolean("coordinators_lead", options.coordinators_lead)
      .boolean("read_js1", options.read_js1)
      .boolean("read_scripts", options.read_scripts)
      .text("slurm_cluster", options.slurm_cluster)
      .text("api", options.api)
      .text("rest_version", options.rest_version)
      .text("rest_socket", options.rest_socket)
      .duration("rest_page", options.rest_page)
      .refuse(options.timeout.count() <= 0, "command_timeout", "must be more than 0s")
      .refuse(!options.slurm_cluster.empty() && !is_cluster_name(options.slurm_cluster),
              "slurm_cluster", "expected the name of one cluster, in lower case")
      .refuse(options.api != "cli" && options.api != "rest", "api", "expected cli or rest")
      .refuse(!options.rest_version.empty() && !is_api_version(options.rest_version),
              "rest_version", "expected a version such as v0.0.40")
      .refuse(!options.rest_socket.empty() && options.rest_socket.front() != '/', "rest_socket",
              "expected an absolute path")
      .refuse(options.read_scripts && options.api == "rest", "read_scripts",
              "slurmrestd has no scripts; it needs api: cli")
      .refuse(options.rest_page < std::chrono::minutes(1), "rest_page", "must be 1m or more");
  CEEMS_TRY(section.done());
  return options;
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

Result<std::unique_ptr<SlurmSource>> create_cli(const ClusterConfig& config,
                                                const SlurmOptions& options,
                                                os::CommandRunner& runner,
                                                bool may_become_root) {
  SlurmCliOptions cli{.cluster_id = config.cluster.id,
                      .directory = {},
                      .environment = os::process_environment(),
                      .timeout = options.timeout,
                      .slurm_cluster = options.slurm_cluster,
                      .memory = options.exact_memory ? MemoryRule::kExact : MemoryRule::kTruncated,
                      .reads_js1 = options.read_js1};
  const std::string search_path = cli.environment["PATH"];
  CEEMS_TRY(directory, command_directory(config, "sacct", search_path));
  cli.directory = std::move(directory);
  for (const auto& [name, value] : config.cli_environment) {
    cli.environment[name] = value;
  }
  if (may_become_root) {
    cli.mode = SlurmMode::kCapability;
  } else if (auto found = os::find_program("sudo", search_path);
             found && sudo_works(runner, *found, cli.directory, cli.environment)) {
    cli.mode = SlurmMode::kSudo;
    cli.sudo = *found;
  } else {
    log::warn("SLURM commands run as the current user; jobs of other users may be missing",
              {{"cluster_id", config.cluster.id}});
  }
  return make_slurm_cli(std::move(cli), runner);
}

Result<std::unique_ptr<SlurmSource>> create_rest(const ClusterConfig& config,
                                                 const SlurmOptions& options) {
  if (config.web_url.empty()) {
    return fail(ErrorCode::kInvalidArgument, "api: rest needs web.url");
  }
  CEEMS_TRY(get, rest_client(config.web, options.timeout, options.rest_socket));
  return make_slurm_rest({.url = config.web_url,
                          .version = options.rest_version,
                          .timeout = options.timeout,
                          .page = options.rest_page,
                          .slurm_cluster = options.slurm_cluster},
                         std::move(get), system_accounts());
}

}  // namespace

void add_association(std::string_view account,
                     std::string_view user,
                     std::set<Membership>& members) {
  if (!account.empty() && !user.empty() && account != "root" && user != "root") {
    members.insert({.project = clean_text(account), .user = clean_text(user)});
  }
}

std::unexpected<Error> no_associations(std::string_view source, std::string_view cluster) {
  return cluster.empty()
             ? fail(ErrorCode::kNoData, "{} lists no association at all, not even that of root",
                    source)
             : fail(
                   ErrorCode::kNoData,
                   "{} lists no association of the cluster '{}'; is extra_config.slurm_cluster the "
                   "name that 'sacctmgr list cluster' shows?",
                   source, cluster);
}

std::unique_ptr<ResourceManager> make_slurm(std::string cluster_id,
                                            std::unique_ptr<SlurmSource> source,
                                            TimeZone zone,
                                            SlurmChoices choices,
                                            const Clock& clock) {
  return std::make_unique<SlurmManager>(std::move(cluster_id), std::move(source), zone, choices,
                                        clock);
}

Result<std::unique_ptr<ResourceManager>> create_slurm(const ClusterConfig& config,
                                                      const ManagerContext& context,
                                                      bool may_become_root) {
  const std::string& id = config.cluster.id;
  CEEMS_TRY(options, read_slurm_options(config.extra));
  const bool rest = options.api == "rest";
  if (!rest && !config.web_url.empty()) {
    log::warn("web.url of a SLURM cluster is not used without extra_config.api: rest",
              {{"cluster_id", id}});
  }
  CEEMS_TRY_IN("cluster " + id, source,
               rest ? create_rest(config, options)
                    : create_cli(config, options, *context.runner, may_become_root));
  return make_slurm(id, std::move(source), context.zone,
                    {.coordinators_lead = options.coordinators_lead,
                     .reads_js1 = options.read_js1,
                     .reads_scripts = options.read_scripts},
                    *context.clock);
}

ManagerSpec slurm_manager() {
  return {
      .name = "slurm",
      .units = "jobs",
      .source = "`sacct`, `sacctmgr`, or slurmrestd",
      .reads_cli = true,
      .reads_web = true,
      .extra_keys = {"command_timeout", "exact_memory", "slurm_cluster", "coordinators_lead",
                     "read_js1", "read_scripts", "api", "rest_version", "rest_socket", "rest_page"},
      .create = [](const ClusterConfig& config, const ManagerContext& context) {
        // CEEMS 0.10.2 drops its capabilities for a SLURM cluster with web.url.
        const bool may_raise =
            config.web_url.empty() && os::may_raise(CAP_SETUID) && os::may_raise(CAP_SETGID);
        return create_slurm(config, context, geteuid() == 0 || may_raise);
      }};
}

}  // namespace ceems::ingest
