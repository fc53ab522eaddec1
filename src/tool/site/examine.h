#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/client/client.h"
#include "tsdb/client.h"

namespace ceems::tool {

enum class State { kOk, kWarning, kProblem };

/// One thing that was examined, in words for operators.
struct Finding {
  State state = State::kOk;
  std::string subject;  ///< "exporters", "api server", ...
  std::string text;     ///< what is so
  std::string fix;      ///< what to do; empty if nothing
};

std::string_view to_string(State state);
/// One line per finding, its fix on the next one, and a count at the end. States are words.
std::string findings_text(const std::vector<Finding>& findings);
/// {"findings":[{"state":"problem","subject":"...","text":"...","fix":"..."}],"problems":1,...}
std::string findings_json(const std::vector<Finding>& findings);
/// 1 if there is a problem, otherwise 0.
int findings_status(const std::vector<Finding>& findings);

/// What `check site` looks at. Nothing is changed anywhere.
struct SiteContext {
  tsdb::Client* tsdb = nullptr;
  /// For requests without passwords, as a stranger would send them. Null: none are sent.
  net::Client* stranger = nullptr;
  /// For requests to the API server and to the load balancer, with their passwords.
  net::Client* api = nullptr;
  net::Client* lb = nullptr;
  std::string tsdb_url;
  std::string api_url;             ///< empty: not examined
  std::string api_user = {};       ///< an admin; empty: the energies of units are not compared
  std::string lb_url;              ///< empty: not examined
  std::string lb_cluster = {};     ///< X-Ceems-Cluster-Id of requests through it
  std::size_t max_exporters = 20;  ///< that are asked without a password
  std::int64_t now_ms = 0;
};

/// Examines Prometheus, the exporters that it scrapes, their data, the API server and the load
/// balancer. A server that does not answer is a finding, not an error.
std::vector<Finding> examine_site(const SiteContext& context);

/// Jobs of a cluster below which SLURM's energies say nothing.
inline constexpr std::size_t kMinComparedJobs = 20;

/// For each cluster of an answer of units/admin that has kMinComparedJobs jobs with an energy of
/// SLURM's own plugin (ConsumedEnergy) and one of ours: whether the median of ours ÷ SLURM's is
/// within 25 %. The median, because SLURM charges a job with its whole nodes, also if it shares
/// them. Jobs below 10 Wh are left out. An answer of another form is a finding, too.
std::vector<Finding> compare_with_slurm(std::string_view answer);

}  // namespace ceems::tool
