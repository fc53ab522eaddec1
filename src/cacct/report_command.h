#pragma once

#include <string>
#include <vector>

#include "cacct/caller.h"
#include "config/flags.h"

namespace ceems::cacct {

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

/// Prints the reports and returns the exit status: 0, or 1 if any of them could not be had.
int run_report(const ReportOptions& options, const Caller& caller);

}  // namespace ceems::cacct
