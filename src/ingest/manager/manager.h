#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ingest/config.h"
#include "model/unit.h"
#include "os/command.h"

namespace ceems::ingest {

struct UsersAndProjects {
  std::vector<model::User> users;
  std::vector<model::Project> projects;
};

/// Names of those who lead a project, by project.
using ProjectLeads = std::map<std::string, std::vector<std::string>>;

/// Where units, users and projects of one cluster come from. Calls come from one thread at a time;
/// `stop` ends them early with kUnavailable. Times are printed in `time_zone` (IANA name).
class ResourceManager {
 public:
  virtual ~ResourceManager() = default;
  virtual Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                                       std::stop_token stop) = 0;
  virtual Result<UsersAndProjects> fetch_users_projects(model::Window window,
                                                        std::stop_token stop) = 0;
  /// All there are: who is not among them leads nothing any more. Nobody, where a manager knows no
  /// such thing or is not to be believed.
  virtual Result<ProjectLeads> fetch_leads(const std::stop_token& /*stop*/) {
    return ProjectLeads{};
  }
  /// How long after its end a window must be left alone until its units can be fetched.
  /// Thread-safe; may change between calls.
  [[nodiscard]] virtual std::chrono::milliseconds settle() const {
    return std::chrono::milliseconds(0);
  }
};

struct ManagerContext {
  const Clock* clock = nullptr;
  os::CommandRunner* runner = nullptr;
  std::string time_zone;
};

/// One line in resource/all.cc.
struct ManagerSpec {
  std::string name;  ///< value of clusters[].manager
  std::function<Result<std::unique_ptr<ResourceManager>>(const ClusterConfig&,
                                                         const ManagerContext&)>
      create;
};
std::vector<ManagerSpec> all_managers();

}  // namespace ceems::ingest
