#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/manager/slurm/job.h"
#include "ingest/manager/slurm/slurm.h"
#include "os/command.h"

namespace ceems::ingest {

/// The fields requested from sacct, in this order (sacct(1)). The two that users can set freely
/// come last.
inline constexpr std::string_view kSacctFields =
    "jobidraw,partition,qos,account,group,gid,user,uid,submit,start,end,elapsed,elapsedraw,"
    "exitcode,state,alloctres,nodelist,jobname,workdir";
inline constexpr std::size_t kSacctFieldCount = 19;

/// Fields that are requested as well if this version of sacct has them, in front of the job's name.
inline constexpr auto kSacctDetails = std::to_array<std::string_view>(
    {"jobid", "timelimitraw", "reqmem", "reqcpus", "reqtres", "nnodes", "eligible", "restarts",
     "consumedenergyraw", "sluid", "admincomment", "constraints", "submitline"});
/// The one of them that is requested only for SlurmCliOptions::reads_js1.
inline constexpr std::string_view kJs1Detail = "admincomment";

/// Returns the fields in kSacctDetails that the output of `sacct --helpformat` lists; none if it is
/// not such a list.
std::vector<std::string_view> listed_details(std::string_view help);
/// The value of --format with these details.
std::string sacct_format(std::span<const std::string_view> details);

/// The states requested from sacct: all that hold or held resources. PENDING jobs wait, and REVOKED
/// ones run on another cluster of the federation.
inline constexpr std::string_view kSacctStates =
    "BOOT_FAIL,CANCELLED,COMPLETED,DEADLINE,FAILED,NODE_FAIL,OUT_OF_MEMORY,PREEMPTED,RUNNING,"
    "REQUEUED,RESIZING,SUSPENDED,TIMEOUT";

/// Parses one record with these details in front of the name. Times without an offset are UTC.
/// Nothing for job steps and for jobs without nodes; kParse for anything that is not a record. With
/// the delimiter "|", the job's name may contain delimiters; its working directory is then assumed
/// to begin at the last "|/".
Result<std::optional<SlurmJob>> parse_sacct_record(std::string_view record,
                                                   std::string_view delimiter,
                                                   MemoryRule rule,
                                                   std::span<const std::string_view> details = {});

/// Joins lines to records and passes each job on at once. A job name may contain newlines and
/// anything else except the delimiter given to sacct --delimiter, because users cannot guess it. So
/// a line may be part of a name. If the first record lacks the delimiter, sacct has ignored the
/// option; then every line is a record delimited by "|".
class SacctReader {
 public:
  SacctReader(std::string delimiter,
              MemoryRule rule,
              std::function<void(const SlurmJob&)> job,
              std::vector<std::string_view> details = {})
      : delimiter_(std::move(delimiter)),
        rule_(rule),
        job_(std::move(job)),
        details_(std::move(details)),
        delimiters_(kSacctFieldCount + details_.size() - 1) {}

  /// Adds the next line of output, without its newline.
  void add_line(std::string_view line);
  /// Must be called after the last line. kParse if there was output but no valid record.
  Result<> finish();
  /// The number of records left out because they do not parse.
  [[nodiscard]] std::size_t malformed() const { return malformed_; }
  [[nodiscard]] const std::string& first_problem() const { return first_problem_; }

 private:
  void end_record();

  std::string delimiter_;
  MemoryRule rule_;
  std::function<void(const SlurmJob&)> job_;
  std::vector<std::string_view> details_;
  std::size_t delimiters_;  ///< in a record
  bool decided_ = false;    ///< whether it is known if sacct honours the delimiter
  bool joins_lines_ = true;
  std::string record_;
  std::size_t record_delimiters_ = 0;
  std::size_t recognized_ = 0;
  std::size_t malformed_ = 0;
  std::string first_problem_;
};

/// How sacct is started (docs/api/resource-managers.md).
enum class SlurmMode {
  kCapability,  ///< as root, by raising CAP_SETUID and CAP_SETGID
  kSudo,        ///< through `sudo -n -E`
  kNative,      ///< as the current user, who may not see the jobs of others
};

struct SlurmCliOptions {
  std::string cluster_id;           ///< for log lines
  std::filesystem::path directory;  ///< of sacct and sacctmgr
  SlurmMode mode = SlurmMode::kNative;
  std::string sudo = {};                                ///< path of sudo, for kSudo
  std::map<std::string, std::string> environment = {};  ///< TZ and SLURM_TIME_FORMAT are added
  std::chrono::milliseconds timeout{};
  std::string slurm_cluster = {};  ///< name in slurmdbd; empty: the one in slurm.conf
  MemoryRule memory = MemoryRule::kTruncated;
  bool reads_js1 = false;  ///< also what jobstats keeps of a job
};

/// The jobs of SLURM from sacct and sacctmgr. Their output is read line by line.
std::unique_ptr<SlurmSource> make_slurm_cli(SlurmCliOptions options, os::CommandRunner& runner);

/// Parses "account|user", a line of
/// `sacctmgr --parsable2 --noheader list associations format=Account,User`.
void add_association_line(std::string_view line, std::set<Membership>& members);

/// Parses "proj1|alice,bob", a line of
/// `sacctmgr --parsable2 --noheader list account withcoord format=Account,Coordinators`. False for
/// a line that names no account.
bool add_coordinator_line(std::string_view line, ProjectLeads& leads);

}  // namespace ceems::ingest
