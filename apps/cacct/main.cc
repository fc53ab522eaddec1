// cacct: what jobs cost, for those who ran them.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "base/log.h"
#include "cacct/caller.h"
#include "cacct/command.h"
#include "cacct/digest_command.h"
#include "cacct/gpus_command.h"
#include "cacct/insight_command.h"
#include "cacct/options.h"
#include "cacct/report_command.h"
#include "cacct/top_command.h"
#include "config/flags.h"

namespace {

namespace cacct = ceems::cacct;

constexpr std::string_view kDescription =
    "Shows the energy, emissions and use of CPUs, memory and GPUs of jobs, as sacct shows their "
    "accounting. Without flags it shows your jobs of today; below them, the sums for each account: "
    "on a terminal as a list that fits its width, otherwise as a table. "
    "`cacct report ID` reports one job with suggestions, `cacct compare ID ID` compares two, "
    "`cacct digest` sums up a month, "
    "`cacct top` watches your running jobs, "
    "`cacct gpus` shows what jobs do on the GPUs, and `cacct insight TOPIC` idle jobs, budgets and "
    "the bill; each has a --help of its own. "
    "Examples: cacct -S yesterday; cacct -j 1234,1235 --long; cacct -S now-1weeks --totals "
    "--human.";

constexpr std::string_view kReport =
    "Reports what jobs used and cost, how that compares to earlier runs, and what would help. "
    "docs/report.md explains each line.";
constexpr std::string_view kInsight =
    "Shows jobs that do nothing with what they have reserved, what projects used of their budgets, "
    "and for operators what the energy of a month was used for.";
constexpr std::string_view kCompare = "Compares what two jobs used and cost.";

constexpr std::string_view kDigest =
    "Shows what you or a project used in a month against the months before, what improved most, "
    "and "
    "up to three suggestions. docs/report.md explains each line.";

constexpr std::string_view kGpus =
    "Shows what jobs did on each GPU in the last 70 minutes, in columns of 10 minutes: the share "
    "of "
    "the SMs that worked and, in brackets, the share of the time in which the GPU was busy. Your "
    "jobs are shown with your name, other users' jobs as `used`.";

constexpr std::string_view kTop =
    "Shows your running jobs and what they do now, every 5 seconds anew; q or Ctrl-C ends it. "
    "Once, "
    "if standard output is not a terminal. Use is that of the last minute or, after a `~`, the "
    "average since the start of the job.";

/// Prints what parse() asks for.
int leave(const ceems::config::FlagOutcome& outcome) {
  constexpr std::string_view kError = "cacct: error: ";
  const int status = outcome.exit.value_or(0);
  if (status != 0 && outcome.text.starts_with(kError)) {  // as the reference says it
    fmt::print(stderr, "{}failed to parse CLI flags: {}", kError,
               outcome.text.substr(kError.size()));
  } else {
    fmt::print(status == 0 ? stdout : stderr, "{}", outcome.text);
  }
  return status;
}

/// Calls `body` with who runs the program.
template <typename Body>
int as_caller(const Body& body) {
  ceems::log::configure(ceems::log::Level::kError, ceems::log::Format::kLogfmt);
  const auto caller = cacct::find_caller();
  if (!caller) {
    fmt::print(stderr, "cacct: error: {}\n", caller.error().message);
    return 1;
  }
  return body(*caller);
}

/// `cacct report` and `cacct compare`; argv[1] is that word.
int run_report(bool compare, int argc, const char* const* argv) {
  cacct::ReportOptions options;
  options.compare = compare;
  ceems::config::FlagSet flags(compare ? "cacct compare" : "cacct report",
                               std::string(compare ? kCompare : kReport));
  cacct::add_report_flags(flags, options);
  const auto outcome = flags.parse(argc - 1, argv + 1);
  if (outcome.exit) {
    return leave(outcome);
  }
  return as_caller([&](const cacct::Caller& caller) { return cacct::run_report(options, caller); });
}

/// `cacct gpus`; argv[1] is that word.
int run_gpus(int argc, const char* const* argv) {
  cacct::GpusOptions options;
  ceems::config::FlagSet flags("cacct gpus", std::string(kGpus));
  cacct::add_gpus_flags(flags, options);
  const auto outcome = flags.parse(argc - 1, argv + 1);
  if (outcome.exit) {
    return leave(outcome);
  }
  return as_caller([&](const cacct::Caller& caller) { return cacct::run_gpus(options, caller); });
}

/// `cacct digest`; argv[1] is that word.
int run_digest(int argc, const char* const* argv) {
  cacct::DigestOptions options;
  ceems::config::FlagSet flags("cacct digest", std::string(kDigest));
  cacct::add_digest_flags(flags, options);
  const auto outcome = flags.parse(argc - 1, argv + 1);
  if (outcome.exit) {
    return leave(outcome);
  }
  return as_caller([&](const cacct::Caller& caller) { return cacct::run_digest(options, caller); });
}

/// `cacct insight`; argv[1] is that word.
int run_insight(int argc, const char* const* argv) {
  cacct::InsightOptions options;
  ceems::config::FlagSet flags("cacct insight", std::string(kInsight));
  cacct::add_insight_flags(flags, options);
  const auto outcome = flags.parse(argc - 1, argv + 1);
  if (outcome.exit) {
    return leave(outcome);
  }
  return as_caller(
      [&](const cacct::Caller& caller) { return cacct::run_insight(options, caller); });
}

/// `cacct top`; argv[1] is that word.
int run_top(int argc, const char* const* argv) {
  ceems::config::FlagSet flags("cacct top", std::string(kTop));
  const auto outcome = flags.parse(argc - 1, argv + 1);
  return outcome.exit
             ? leave(outcome)
             : as_caller([](const cacct::Caller& caller) { return cacct::run_top(caller); });
}

/// A link with the name of jobstats, for people and scripts that are used to it.
int run_jobstats(int argc, const char* const* argv) {
  cacct::ReportOptions options;
  options.jobstats = true;
  ceems::config::FlagSet flags("jobstats", std::string(kReport));
  cacct::add_report_flags(flags, options);
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    return leave(outcome);
  }
  options.so_far = true;  // as jobstats does
  return as_caller([&](const cacct::Caller& caller) { return cacct::run_report(options, caller); });
}

int run(int argc, const char* const* argv) {
  std::string_view name = argc > 0 ? argv[0] : "";
  name.remove_prefix(std::min(name.rfind('/') + 1, name.size()));  // npos + 1 is 0
  if (name == "jobstats") {
    return run_jobstats(argc, argv);
  }
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "report" || first == "compare") {
    return run_report(first == "compare", argc, argv);
  }
  if (first == "digest") {
    return run_digest(argc, argv);
  }
  if (first == "gpus") {
    return run_gpus(argc, argv);
  }
  if (first == "top") {
    return run_top(argc, argv);
  }
  if (first == "insight") {
    return run_insight(argc, argv);
  }
  cacct::Options options;
  ceems::config::FlagSet flags("cacct", std::string(kDescription));
  cacct::add_flags(flags, options);
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    return leave(outcome);
  }
  return as_caller([&](const cacct::Caller& caller) { return cacct::run(options, caller); });
}

}  // namespace

int main(int argc, char** argv) {
  cacct::shed_environment();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("cacct: error: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
