#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/batch/job.h"

// What the commands of IBM Spectrum LSF print about jobs.
namespace ceems::ingest::lsf {

/// The fields that are requested with `bjobs -json -o`.
inline constexpr std::string_view kBjobsFields =
    "jobid jobindex user user_group queue job_name proj_name stat alloc_slot nalloc_slot "
    "submit_time start_time finish_time run_time effective_resreq gpu_num gpu_alloc mem memlimit "
    "mem_efficiency runtimelimit exec_cwd";

/// How times are read: in this zone, and those without a year as the last before about `now_ms`.
struct Times {
  TimeZone zone = {};
  std::int64_t now_ms = 0;
};

/// A record of bjobs. The job is not finished, whatever its FINISH_TIME says, unless its status is
/// DONE or EXIT.
struct RunningJob {
  BatchJob job;
  bool holds = false;  ///< it has started and is neither waiting nor finished
};

/// Parses one element of RECORDS. Nothing for an element without a job, such as one with an ERROR;
/// kParse for anything else that is not a job.
Result<std::optional<RunningJob>> parse_running(std::string_view json, const Times& times);

/// A job of bacct.
struct FinishedJob {
  BatchJob job;
  /// False if the user put text into the job's name that looks like the fields behind it. User,
  /// project, queue and name are then not known.
  bool clear = true;
};

/// Parses the lines about one job. Nothing for a job that never ran; kParse for anything that is
/// not a job.
Result<std::optional<FinishedJob>> parse_finished(const std::vector<std::string>& lines,
                                                  const Times& times);

/// Reads the output of `bacct -l -UF` and passes each job on at once. A record begins with a line
/// "Job <...", and ends with a line of dashes or the next record. Names and commands of jobs are
/// printed as they are and may hold such lines, see has_too_many().
class BacctReader {
 public:
  BacctReader(Times times, std::function<void(FinishedJob)> job)
      : times_(times), job_(std::move(job)) {}

  void add_line(std::string_view line);
  /// Must be called after the last line.
  void finish();
  /// Whether there are more records than the summary at the end counts jobs. Then the text of a
  /// job looks like records, and none of them can be believed.
  [[nodiscard]] bool has_too_many() const { return listed_ && records_ > *listed_; }
  [[nodiscard]] std::size_t malformed() const { return malformed_; }
  [[nodiscard]] const std::string& first_problem() const { return first_problem_; }

 private:
  void end_record();

  const Times times_;
  const std::function<void(FinishedJob)> job_;
  std::vector<std::string> record_;
  std::size_t bytes_ = 0;
  std::size_t records_ = 0;
  std::optional<std::size_t> listed_;  // by the last summary
  std::size_t malformed_ = 0;
  std::string first_problem_;
};

}  // namespace ceems::ingest::lsf
