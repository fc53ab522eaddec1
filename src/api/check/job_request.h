#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/report/maker.h"
#include "base/result.h"
#include "report/report.h"

namespace ceems::api {

/// A job that is not submitted yet (docs/check.md). Users write it, so texts are untrusted. CPUs,
/// GPUs and memory are of the whole job.
struct JobRequest {
  std::string cluster_id = {};
  std::string form = {};  ///< "sbatch", "pbs", "lsf", "k8s"; empty: that of the cluster's manager
  std::string name = {}, project = {}, partition = {};
  report::Number nodes = {}, cpus = {}, gpus = {}, memory = {}, time_limit = {};
  std::int64_t array_tasks = 1;
  std::vector<std::string> directives = {};  ///< "--nodes=1", without "#SBATCH"
  std::optional<std::int64_t> deadline_ms = {};

  [[nodiscard]] bool wants_gpus() const { return gpus.value_or(0) > 0; }
};

/// The largest body of a request, in bytes.
inline constexpr std::size_t kMaxJobRequest = std::size_t{64} << 10U;

/// Reads the JSON of a request. kInvalidArgument names the member that is unknown, missing or
/// malformed.
Result<JobRequest> parse_job_request(std::string_view body);

/// The manager whose lines have this form, or nothing: "slurm" of "sbatch".
std::optional<std::string_view> manager_of_form(std::string_view form);

/// The request as the database would have it of a unit, for functions that know how each manager
/// writes requests. It has no times and no measurements.
StoredUnit unit_of(const JobRequest& request, std::string_view manager);

}  // namespace ceems::api
