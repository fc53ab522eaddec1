#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/batch/job.h"

// What qstat of OpenPBS prints about jobs.
namespace ceems::ingest::openpbs {

/// Where the project of a job comes from: the first of these that the job has counts.
enum class ProjectSource {
  kProject,  ///< the attribute `project` (qsub -P), unless it is _pbs_project_default
  kAccount,  ///< the attribute Account_Name (qsub -A)
  kGroup,    ///< the attribute egroup, the Unix group of the job's processes
};

struct JobRules {
  TimeZone zone = {};  ///< of printed times
  std::int64_t now_ms = 0;
  std::vector<ProjectSource> projects = {ProjectSource::kProject, ProjectSource::kAccount};
};

/// Whether a text can be the id of a job, which no attribute of a job can be.
bool is_job_id(std::string_view id);

/// The attributes of a job without `Variable_List`, for a job whose environment makes them invalid
/// JSON; some versions of PBS write it without escapes. Jobs control their environment, so of what
/// follows it only attributes are kept that are valid JSON and come once. Empty if there is
/// no environment.
std::string without_environment(std::string_view json);

/// Whether a record has an environment. Some versions of PBS print it without escapes, so what
/// stands behind it may be the work of a user.
bool has_environment(std::string_view json);

/// Who submitted the job, from what stands in front of the environment; empty if nothing does.
std::string_view owner_of(std::string_view json);

/// Parses one element of `Jobs` of `qstat -f -F json`. Nothing for a job that has not started and
/// for the whole of a job array, which holds nothing itself; kParse for anything else that is not a
/// job. Where an attribute comes twice, without_environment() decides.
Result<std::optional<BatchJob>> parse_job(std::string_view id,
                                          std::string_view json,
                                          const JobRules& rules);

}  // namespace ceems::ingest::openpbs
