#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cacct/output/answer.h"

namespace ceems::cacct {

/// A job, or the sum of jobs, in the list on a terminal. Texts are safe for a terminal; empty ones
/// and missing numbers are not known.
struct JobLine {
  std::string uuid = {};
  std::string id = {};  ///< as SLURM shows it
  std::string name = {}, user = {}, account = {}, state = {}, elapsed = {};
  std::int64_t started_ms = 0;                         ///< 0: has not started
  std::int64_t ended_ms = 0;                           ///< 0: has not ended
  std::optional<double> cpu = {}, mem = {}, gpu = {};  ///< percent of what was reserved
  std::optional<double> kwh = {}, cost = {};
  double gpus = 0;
  std::vector<std::string> below = {};  ///< lines about the job
};

/// The fields of /api/v1/units from which the lines are made.
inline constexpr std::string_view kJobLineFields =
    "jobid,name,account,user,state,elapsed,cpuusage,cpumemoryusage,hostenergy,gpuusage,gpuenergy";
/// The columns of units/list from which the lines are made.
inline constexpr std::string_view kJobLineColumns =
    "uuid,array,name,user,project,state,started,ended,gpus,cpu,mem,gpu,kwh,cost";

JobLine job_line(const Record& unit);
/// The sum of a user and account.
JobLine sum_line(const Record& usage);
/// Lines of an answer of units/list. kParse for anything else.
Result<std::vector<JobLine>> parse_job_lines(const std::string& body);

/// What /api/v1/site says of money.
struct Prices {
  bool known = false;
  std::string currency = {};
};
/// Nothing is known if the body is not such an answer.
Prices parse_prices(const std::string& body);

/// How the list is drawn.
struct JobListLook {
  std::size_t width = 80;
  bool ascii = false;
  bool bold = false;  ///< titles, with an escape sequence
  bool totals = false;
  std::int64_t now = 0;  ///< seconds
  std::string currency = {};
};

/// The jobs in lines that are at most `look.width` wide where that can be: long names are cut, then
/// columns left out. Below them the sums, if there is more than one job.
std::string draw_job_list(const std::vector<JobLine>& jobs,
                          const std::vector<JobLine>& sums,
                          const JobListLook& look);

/// When a job started, shorter the nearer it is to `now`: 17:48, 28 Nov 17:48, 2025-11-28. `brief`
/// leaves out the time of other days.
std::string start_text(std::int64_t started_ms, std::int64_t now, bool brief);
/// An amount of money, without the currency.
std::string cost_text(double cost);

}  // namespace ceems::cacct
