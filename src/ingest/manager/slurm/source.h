#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/slurm/job.h"
#include "ingest/manager/slurm/sacct.h"
#include "model/unit.h"

namespace ceems::ingest {

/// Where the accounting data of one SLURM cluster come from. Calls come from one thread at a time.
/// An error means that what was handed over may be incomplete.
class SlurmSource {
 public:
  using JobSink = std::function<void(const SlurmJob&)>;

  virtual ~SlurmSource() = default;
  /// Every start of a job, steps left out, that held resources in the window; others may come too.
  virtual Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) = 0;
  /// The same for these raw job ids, whenever they ran.
  virtual Result<> jobs_by_id(const std::vector<std::string>& ids,
                              const JobSink& job,
                              std::stop_token stop) = 0;
  virtual Result<Associations> associations(std::stop_token stop) = 0;
  /// Of accounts, as far as they have any. An error where no account is told: there always is one.
  virtual Result<ProjectLeads> coordinators(std::stop_token stop) = 0;
};

}  // namespace ceems::ingest
