#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/resource/time_text.h"
#include "base/result.h"
#include "model/unit.h"
#include "store/time_zone.h"

namespace ceems::api {

/// Fields asked of sacct, in this order (sacct(1)). The two that users may fill freely come last.
inline constexpr std::string_view kSacctFields =
    "jobidraw,partition,qos,account,group,gid,user,uid,submit,start,end,elapsed,elapsedraw,"
    "exitcode,state,alloctres,nodelist,jobname,workdir";
inline constexpr std::size_t kSacctFieldCount = 19;

/// States asked of sacct. All but PENDING: whatever held resources in the window is wanted.
inline constexpr std::string_view kSacctStates =
    "BOOT_FAIL,CANCELLED,COMPLETED,DEADLINE,FAILED,NODE_FAIL,OUT_OF_MEMORY,PREEMPTED,RUNNING,"
    "REQUEUED,SUSPENDED,TIMEOUT";

/// AllocTRES; 0 where absent.
struct Allocation {
  std::int64_t nodes = 0;
  std::int64_t cpus = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t gpus = 0;
  std::int64_t billing = 0;
};

/// "billing=80,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=320.5G,node=1". `gres/gpu=` is the number of
/// GPUs; without it the typed entries are summed. mem takes K, M, G, T, P, E as powers of 1024;
/// without a letter it is MiB. Elements that do not parse count as absent.
Allocation parse_alloc_tres(std::string_view text);

/// One job of sacct. Texts are as printed.
struct SacctJob {
  std::string id, partition, qos, account, group, user, submit_text, start_text, end_text, elapsed,
      exit_code, state, node_list, name, work_dir;
  std::int64_t gid = 0;
  std::int64_t uid = 0;
  std::optional<std::int64_t> submit_ms, start_ms, end_ms;  ///< epoch; absent: not known (yet)
  Allocation allocation;
};

/// One record. Times without offset are UTC. Nothing for what is no job of its own (steps, jobs
/// without nodes); kParse for what is no record. With the delimiter "|" the job's name may hold
/// delimiters; its working directory is then taken to begin at the last "|/".
Result<std::optional<SacctJob>> parse_sacct_record(std::string_view record,
                                                   std::string_view delimiter);

/// Joins lines to records. Job names may hold line ends and anything else, so a line alone proves
/// nothing; a delimiter that nobody could guess does (sacct --delimiter). If the first line lacks
/// it, sacct has ignored the option: then every line is a record with "|".
class SacctReader {
 public:
  explicit SacctReader(std::string delimiter) : delimiter_(std::move(delimiter)) {}

  /// The next line of output, without its end.
  void add_line(std::string_view line);
  /// After the last line. kParse if there was output but no record in it at all.
  Result<std::vector<SacctJob>> finish();
  /// Lines or records left out because they do not parse.
  [[nodiscard]] std::size_t malformed() const { return malformed_; }
  [[nodiscard]] const std::string& first_problem() const { return first_problem_; }

 private:
  void end_record();

  std::string delimiter_;
  bool decided_ = false;  ///< whether sacct honours the delimiter is known
  bool joins_lines_ = true;
  std::string record_;
  std::vector<SacctJob> jobs_;
  std::size_t recognized_ = 0;
  std::size_t malformed_ = 0;
  std::string first_problem_;
};

/// Milliseconds that the job ran in the window. A job that ended before the window counts in full:
/// it was not seen in time, and the store adds a unit only once (docs/api/resource-managers.md).
std::int64_t active_ms(const SacctJob& job, model::Window window);

/// The job as it stood at the end of the window: one that ended later is still running there, one
/// that started later does not exist yet (nothing). `cluster_id` and the like are filled in.
std::optional<model::Unit> to_unit(const SacctJob& job,
                                   model::Window window,
                                   const store::TimeZone& zone,
                                   const std::string& cluster_id);

/// Users and their accounts from lines "account|user" of
/// `sacctmgr --parsable2 --noheader list associations format=Account,User`. root is left out.
class Associations {
 public:
  void add_line(std::string_view line);
  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& accounts_of_users() const {
    return accounts_of_users_;
  }
  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& users_of_accounts() const {
    return users_of_accounts_;
  }

 private:
  std::map<std::string, std::vector<std::string>> accounts_of_users_;  ///< sorted, unique
  std::map<std::string, std::vector<std::string>> users_of_accounts_;
};

}  // namespace ceems::api
