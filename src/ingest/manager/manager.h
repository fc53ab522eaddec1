#pragma once

#include <chrono>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/config.h"
#include "model/account_names.h"
#include "model/flavor.h"
#include "model/unit.h"
#include "os/command.h"

namespace ceems::ingest {

struct UsersAndProjects {
  std::vector<model::User> users;
  std::vector<model::Project> projects;
};

/// Names of the users who lead a project, by project.
using ProjectLeads = std::map<std::string, std::vector<std::string>>;

/// A user who belongs to a project.
struct Membership {
  std::string project;
  std::string user;
  auto operator<=>(const Membership&) const = default;
};
/// The users with their projects and the projects with their users, each sorted by name.
UsersAndProjects users_and_projects(const std::set<Membership>& members);

/// The source of the units, users and projects of one cluster. Calls come from one thread at a
/// time; `stop` ends them early with kUnavailable. The caller sets `cluster_id` and
/// `resource_manager` of the result.
class ResourceManager {
 public:
  virtual ~ResourceManager() = default;
  /// Called before fetch_units(), for managers that know accounts by ids. `stored` has the names of
  /// the database; nothing if the new_names() of the last window were written since.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): managers that need it keep it
  virtual void restore_names(std::optional<model::AccountNames> /*stored*/) {}
  /// The names that were given to ids since they were stored. Called after the fetches of a window.
  [[nodiscard]] virtual model::AccountNames new_names() const { return {}; }
  /// The flavors in which VMs are made, as far as the manager has read them; nothing if it has not.
  /// Called after the fetches of a window.
  [[nodiscard]] virtual std::optional<std::vector<model::Flavor>> flavors() const {
    return std::nullopt;
  }
  /// Returns the units of a window as they stood at its end: a unit that ended later is still
  /// running, and a unit that started later is left out. total_time_seconds has the time in the
  /// window. For a unit that ended before the window, because its end was recorded late, it has all
  /// of the unit's time, and the store adds what it has not counted yet (Writer::write()). A unit
  /// that ended exactly at the window's start belongs to the window before; its time may be 0.
  ///
  /// Windows follow one another without gap or overlap. After an error, or if the window could not
  /// be stored, the next round requests it again, with the same start and the same or a later end.
  virtual Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                                       std::stop_token stop) = 0;
  virtual Result<UsersAndProjects> fetch_users_projects(model::Window window,
                                                        std::stop_token stop) = 0;
  /// Whether a fetch returns only the users and projects of its jobs. All users with usage of a
  /// project in the database are then members of it, too. The database forgets usage when they had
  /// no job for the retention period (store::ClusterUpdate::members_of_usage).
  [[nodiscard]] virtual bool members_are_of_jobs() const { return false; }
  /// Returns all leads of all projects. A user who is not among them loses the role. Empty for
  /// managers that do not know the leads.
  virtual Result<ProjectLeads> fetch_leads(const std::stop_token& /*stop*/) {
    return ProjectLeads{};
  }
  /// How long after its end a window may be fetched at the earliest. Thread-safe; the value may
  /// change between calls.
  [[nodiscard]] virtual std::chrono::milliseconds settle() const {
    return std::chrono::milliseconds(0);
  }
};

/// What all managers use. `clock` and `runner` must outlive the managers.
struct ManagerContext {
  const Clock* clock = nullptr;
  os::CommandRunner* runner = nullptr;
  TimeZone zone = {};  ///< the zone of printed times
};

/// Everything that describes one kind of manager: an entry of all_managers().
struct ManagerSpec {
  /// Value of clusters[].manager, and the name of its row and section in
  /// docs/api/resource-managers.md.
  std::string name;
  std::string units;       ///< what its units are ("jobs"); a Markdown cell of that row
  std::string source;      ///< where they are read from; a Markdown cell of that row
  bool reads_cli = false;  ///< whether clusters[].cli matters; if not, a configured one is logged
  bool reads_web = false;  ///< the same for clusters[].web
  /// Whether the units are read from the TSDB that has their metrics. config.web_url and config.web
  /// are then taken from tsdb_of_cluster(), and are empty if it finds no TSDB.
  bool units_from_tsdb = false;
  std::vector<std::string_view> extra_keys = {};  ///< keys of extra_config; others are rejected
  std::function<Result<std::unique_ptr<ResourceManager>>(const ClusterConfig&,
                                                         const ManagerContext&)>
      create;
};

const std::vector<ManagerSpec>& all_managers();
/// Returns null for an unknown name.
const ManagerSpec* find_manager(std::string_view name);

/// Checks the configuration against the spec and creates the manager. kInvalidArgument with file
/// and line for unknown keys of extra_config; other errors come from spec.create.
Result<std::unique_ptr<ResourceManager>> create_manager(const ManagerSpec& spec,
                                                        const ClusterConfig& config,
                                                        const ManagerContext& context);

}  // namespace ceems::ingest
