#pragma once

#include <string>
#include <vector>

#include "config/flags.h"

namespace ceems::cacct {

/// The command line of cacct.
struct Options {
  std::vector<std::string> accounts{};
  std::string start_time{};  ///< empty: the start of the day
  std::string end_time{};    ///< empty: now
  std::vector<std::string> jobs{};
  std::vector<std::string> users{};
  bool all_users = false;
  bool allocations = false;  ///< has no effect
  std::string format{};
  bool help_format = false;
  bool long_format = false;
  bool series = false;
  std::string series_directory = "out";
  std::vector<std::string> series_names{};
  std::string series_format = "csv";
  bool csv = false;
  bool html = false;
  bool markdown = false;
  bool json = false;
  bool parsable = false;
  bool no_header = false;
  bool totals = false;
  bool human = false;
  bool gpus = false;
  bool pager = true;
  std::string account_filter{};
};

void add_flags(config::FlagSet& flags, Options& options);

/// Splits the values of a flag that takes IDs of jobs, in whose brackets commas do not separate.
std::vector<std::string> id_parts(const std::vector<std::string>& values);
/// Splits the values of a flag that takes comma lists. Empty parts are dropped.
std::vector<std::string> comma_parts(const std::vector<std::string>& values);

}  // namespace ceems::cacct
