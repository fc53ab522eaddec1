#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cacct/caller.h"
#include "cacct/options.h"
#include "config/flags.h"

// The commands of cacct. Each prints what its command line asks for and returns the exit status: 0,
// or 1 after an error, which is printed.
namespace ceems::cacct {

/// Lists jobs. Gives up all privileges on the way.
int run(const Options& options, const Caller& caller);

/// The command lines of `cacct report` and `cacct compare`.
struct ReportOptions {
  bool compare = false;   ///< `cacct compare`
  bool jobstats = false;  ///< called by the name of jobstats, with its flags
  std::vector<std::string> ids{};
  bool json = false;
  bool markdown = false;
  bool html = false;
  bool ascii = false;
  bool so_far = false;
  bool all_findings = false;
  bool all_users = false;
  long width = 0;  ///< 0: that of the terminal
  std::string language = "en";
  // Of jobstats:
  std::string cluster{};  ///< must be that of the configuration
  bool js1 = false;       ///< what it keeps in AdminComment
  bool ignored = false;   ///< flags that have no effect
};

/// Adds the flags of jobstats if `options.jobstats` is set, of `cacct compare` if `options.compare`
/// is set, otherwise the flags of `cacct report`.
void add_report_flags(config::FlagSet& flags, ReportOptions& options);

/// Fails if any of the reports could not be had.
int run_report(const ReportOptions& options, const Caller& caller);

/// The command line of `cacct digest`.
struct DigestOptions {
  std::string month{};    ///< "2026-11"; empty: this one
  std::string project{};  ///< empty: the caller's own month
  bool all_clusters = false;
  bool json = false;
  bool markdown = false;
  bool html = false;
  bool ascii = false;
  long width = 0;  ///< 0: that of the terminal
  std::string language = "en";
};

void add_digest_flags(config::FlagSet& flags, DigestOptions& options);
int run_digest(const DigestOptions& options, const Caller& caller);

/// The command line of `cacct gpus`.
struct GpusOptions {
  bool me = false;         ///< only GPUs that the caller's units used
  std::string node{};      ///< only nodes whose name has a match of this pattern
  bool all_users = false;  ///< with the units of all users; only operators may ask for them
  bool json = false;
  bool csv = false;
  bool ascii = false;
};

void add_gpus_flags(config::FlagSet& flags, GpusOptions& options);
int run_gpus(const GpusOptions& options, const Caller& caller);

/// The command line of `cacct insight`.
struct InsightOptions {
  std::vector<std::string> topic{};  ///< idle, budgets and so on; some of them and a job
  bool json = false;
  bool csv = false;
  bool all_users = false;
  std::vector<std::string> projects{};
  std::string month{};  ///< of the bill
  std::string by{};     ///< of idle: project, partition, user
  std::string node{};   ///< of neighbours
};

void add_insight_flags(config::FlagSet& flags, InsightOptions& options);
int run_insight(const InsightOptions& options, const Caller& caller);

/// The answer of the API server as text or CSV. Texts of others are made safe for a terminal.
/// kParse if it is not such an answer.
Result<std::string> insight_text(std::string_view topic, bool by, const std::string& answer);
Result<std::string> insight_csv(std::string_view topic, bool by, const std::string& answer);
/// A line for each cluster whose TSDB did not respond.
std::string insight_missing(std::string_view topic, const std::string& answer);

/// The command line of `cacct check`.
struct CheckOptions {
  std::vector<std::string> words{};  ///< those behind sbatch, qsub, bsub or kubectl
  bool json = false;
  bool brief = false;
  std::string form{};      ///< slurm, pbs, lsf, k8s; empty: as the script says
  std::string deadline{};  ///< in words of time
  long timeout = 0;        ///< milliseconds; 0: 5000, or 300 if `brief`
};

void add_check_flags(config::FlagSet& flags, CheckOptions& options);
/// The arguments with "--" before the first that is none of these flags: what follows belongs to
/// the command that would submit the job.
std::vector<const char*> check_arguments(std::span<const char* const> arguments);
/// Returns 1 only for a command line or script that cannot be used. With `brief`, ends the program
/// with status 0 when the time is over.
int run_check(const CheckOptions& options, const Caller& caller);

/// Shows the caller's running jobs, every five seconds anew until q or Ctrl-C. Once, if standard
/// output is not a terminal.
int run_top(const Caller& caller);

}  // namespace ceems::cacct
