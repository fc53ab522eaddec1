#include "cacct/options.h"

#include <utility>

#include "base/strings.h"

namespace ceems::cacct {

void add_flags(config::FlagSet& flags, Options& options) {
  flags.add("account", options.accounts,
            {.help = "Show only jobs of these accounts, separated by commas.",
             .placeholder = "ACCOUNT,...",
             .letter = 'A'});
  flags.alias("accounts", "account");
  flags.add("starttime", options.start_time,
            {.help = "Show jobs that ran at this time or later, in the local time zone: "
                     "YYYY-MM-DD[THH:MM[:SS]], HH:MM, yesterday, now-2hours and other forms of "
                     "sacct. The default is the start of today.",
             .placeholder = "TIME",
             .letter = 'S'});
  flags.alias("since", "starttime");
  flags.add("endtime", options.end_time,
            {.help = "Show jobs that ran before this time. The default is now.",
             .placeholder = "TIME",
             .letter = 'E'});
  flags.alias("until", "endtime");
  flags.add("job", options.jobs,
            {.help = "Show only these jobs, whenever they ran; IDs are separated by commas. IDs as "
                     "SLURM shows them are known, too: 7100_4, 7100_[1,3-5], 8200+1; the ID of an "
                     "array means its tasks.",
             .placeholder = "ID,...",
             .letter = 'j'});
  flags.alias("jobs", "job");
  flags.add("user", options.users,
            {.help = "Show jobs of these users, separated by commas; 'all' means every user. Only "
                     "operators may see the jobs of others.",
             .placeholder = "USER,...",
             .letter = 'u'});
  flags.add("allusers", options.all_users, {.help = "The same as --user all.", .letter = 'a'});
  flags.add("allocations", options.allocations,
            {.help = "Accepted as a habit of sacct; cacct shows no steps of jobs anyway.",
             .letter = 'X'});
  flags.add("format", options.format,
            {.help = "Show these fields, separated by commas; --helpformat lists them. A width may "
                     "follow, as in name%20 or name%-20.",
             .placeholder = "FIELD,...",
             .letter = 'o'});
  flags.add("helpformat", options.help_format,
            {.help = "List the fields for --format and the time series for --ts, and end.",
             .letter = 'e'});
  flags.add("long", options.long_format,
            {.help = "Show all fields. Takes precedence over --format.", .letter = 'l'});
  flags.add("ts", options.series,
            {.help = "Also write the time series of the jobs named by --job into files. An "
                     "interrupted run continues where it was."});
  flags.add("ts.out-dir", options.series_directory, {.help = "Directory for these files."});
  flags.add("ts.metrics", options.series_names,
            {.help = "Write only these time series, separated by commas; --helpformat lists them. "
                     "Implies --ts.",
             .placeholder = "NAME,..."});
  flags.add_enum("ts.format", options.series_format, {"csv", "jsonl"},
                 {.help = "Format of the files: csv, or jsonl for JSON lines."});
  flags.add("csv", options.csv, {.help = "Print the table as CSV."});
  flags.add("html", options.html, {.help = "Print the table as HTML."});
  flags.add("markdown", options.markdown, {.help = "Print the table as Markdown."});
  flags.add("json", options.json,
            {.help = "Print jobs and sums as JSON, with numbers that are not rounded."});
  flags.add(
      "parsable2", options.parsable,
      {.help = "Print a line for each job, with '|' between fields, without sums.", .letter = 'P'});
  flags.add("noheader", options.no_header,
            {.help = "With --parsable2, print no line of names.", .letter = 'n'});
  flags.add("totals", options.totals,
            {.help = "Add a line with the sum of all users and accounts."});
  flags.add("human", options.human,
            {.help = "Print energy, emissions and memory in units that fit, such as 1.20 Wh."});
  flags.add(
      "gpus", options.gpus,
      {.help = "Show the list of jobs as on a terminal, and below each job the use of its GPUs "
               "over time, the least used first."});
  flags.add("pager", options.pager,
            {.help = "On a terminal, show tables that do not fit with less."});
  flags.add("account-filter", options.account_filter,
            {.help = "Show only jobs of accounts that match this regular expression.",
             .placeholder = "REGEX",
             .hidden = true});
}

std::vector<std::string> id_parts(const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (const std::string& value : values) {
    bool inside = false;
    std::string part;
    for (const char c : value) {
      inside = c == '[' || (inside && c != ']');
      if (c != ',' || inside) {
        part += c;
      } else if (!part.empty()) {
        parts.push_back(std::exchange(part, {}));
      }
    }
    if (!part.empty()) {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::vector<std::string> comma_parts(const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (const std::string& value : values) {
    for (const std::string_view part : split(value, ',')) {
      if (!part.empty()) {
        parts.emplace_back(part);
      }
    }
  }
  return parts;
}

}  // namespace ceems::cacct
