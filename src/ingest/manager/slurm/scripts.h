#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ingest/manager/slurm/job.h"
#include "ingest/manager/slurm/slurm.h"
#include "jobscript/submit_options.h"
#include "model/unit.h"

namespace ceems::ingest {

/// Takes apart what `sacct --batch-script --jobs` prints, and keeps the directives only. A script
/// may hold the heading of another one, so one that is there twice is not used.
class ScriptOutput {
 public:
  /// The ids that were asked for, as SLURM shows them. A single one has all of the output.
  explicit ScriptOutput(std::vector<std::string> ids);

  /// Adds the next line, without its newline.
  void add_line(std::string_view line);

  struct Found {
    bool doubtful = false;                       ///< there are several such headings
    std::optional<std::string> directives = {};  ///< ScriptDirectives::text()
  };
  /// What was found, by id. Call once, after the last line.
  std::map<std::string, Found> finish();

 private:
  void add_text(std::string_view line);

  std::vector<std::string> ids_;
  std::map<std::string, Found> found_;
  std::string heading_;  ///< of a script, if dashes follow
  std::string id_;       ///< whose script the lines belong to; empty: none
  jobscript::ScriptDirectives directives_;
};

/// The directives of the scripts of jobs whose command does not say how they asked. Reading them
/// takes a limited time at each fetch, and in each period: an update that catches up has many
/// fetches. What was not read is asked for at the next fetch that has the job.
class ScriptReader {
 public:
  static constexpr std::chrono::milliseconds kCallTime{5'000};
  static constexpr std::chrono::milliseconds kFetchTime{10'000};
  static constexpr std::chrono::milliseconds kPeriodTime{20'000};
  static constexpr std::chrono::minutes kPeriod{10};
  static constexpr std::size_t kJobsAtOnce = 200;
  static constexpr int kMaxCalls = 20;
  /// How many jobs are worth collecting for read().
  static constexpr std::size_t kMaxJobs = kJobsAtOnce * kMaxCalls;

  ScriptReader(std::string cluster_id, const Clock& clock)
      : cluster_id_(std::move(cluster_id)), clock_(clock) {}

  /// Begins a fetch. Forgets jobs that were in none of the last ones.
  void begin();
  /// The directives for SlurmDetails::script_options; "" if they are not known.
  std::string directives_of(const SlurmJob& job);
  /// Whether the job's directives are wanted and were not asked for yet.
  [[nodiscard]] bool wants(const SlurmJob& job, model::Window window) const;
  /// Reads the scripts of jobs that it wants. Errors are logged only.
  void read(std::span<const SlurmJob> jobs, SlurmSource& source, const std::stop_token& stop);

 private:
  struct Known {
    std::string directives = {};
    bool asked = false;  ///< and there is nothing more to learn
    int failures = 0;
    std::uint64_t fetch = 0;  ///< the last one that had the job
  };
  using Ids = std::vector<std::string>;  // as SLURM shows them

  void read_until(Clock::SteadyTime deadline,
                  std::span<const SlurmJob> jobs,
                  SlurmSource& source,
                  const std::stop_token& stop);
  void take(const Ids& ids, std::map<std::string, ScriptOutput::Found> found);
  void note(bool works, const std::string& error);

  std::string cluster_id_;
  const Clock& clock_;
  std::map<std::string, Known, std::less<>> known_;         ///< by job; an array is one
  std::map<std::string, std::string, std::less<>> job_of_;  ///< by id, while scripts are read
  std::uint64_t fetch_ = 0;
  std::optional<Clock::SteadyTime> period_;  ///< its start
  std::chrono::milliseconds spent_{0};       ///< in the period
  bool fails_ = false;
  bool has_scripts_ = false;  ///< some job had one
  bool said_none_ = false;
};

}  // namespace ceems::ingest
