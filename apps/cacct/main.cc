// cacct: what jobs cost, for those who ran them.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/log.h"
#include "cacct/caller.h"
#include "cacct/commands.h"
#include "cacct/options.h"
#include "config/flags.h"

namespace {

namespace cacct = ceems::cacct;

constexpr std::string_view kDescription =
    "Shows the energy, emissions and use of CPUs, memory and GPUs of jobs, as sacct shows their "
    "accounting. Without flags it shows your jobs of today; below them, the sums for each account: "
    "on a terminal as a list that fits its width, otherwise as a table. "
    "`cacct report ID` reports one job with suggestions, `cacct compare ID ID` compares two, "
    "`cacct check job.sh` says what a job would cost before it is submitted, "
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

constexpr std::string_view kCheck =
    "Says what a job would wait, take and cost before it is submitted: by earlier runs of its "
    "kind, with the range in which most of them were, what they left unused, the lines to change, "
    "and when the grid is greenest. Takes the words that would follow sbatch, qsub or bsub, or a "
    "manifest of Kubernetes; submits nothing. Examples: cacct check job.sh; cacct check -N 2 "
    "--gres=gpu:4 job.sh; cacct check --deadline tomorrow job.sh; cacct check --form pbs -- -l "
    "select=1:ncpus=4. docs/check.md explains each line.";

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

/// Parses the flags behind arguments[0] and runs the command.
template <typename Options, typename AddFlags, typename Run>
int run_command(std::span<const char* const> arguments,
                const char* name,
                std::string_view description,
                Options&& options,
                const AddFlags& add_flags,
                const Run& run) {
  ceems::config::FlagSet flags(name, std::string(description));
  add_flags(flags, options);
  const auto outcome = flags.parse(static_cast<int>(arguments.size()), arguments.data());
  if (outcome.exit) {
    return leave(outcome);
  }
  ceems::log::configure(ceems::log::Level::kError, ceems::log::Format::kLogfmt);
  const auto caller = cacct::find_caller();
  if (!caller) {
    fmt::print(stderr, "cacct: error: {}\n", caller.error().message);
    return 1;
  }
  return run(options, *caller);
}

/// A link with the name of jobstats, for people and scripts that are used to it.
int run_jobstats(std::span<const char* const> arguments) {
  return run_command(arguments, "jobstats", kReport, cacct::ReportOptions{.jobstats = true},
                     cacct::add_report_flags,
                     [](cacct::ReportOptions& options, const cacct::Caller& caller) {
                       options.so_far = true;  // as jobstats does
                       return cacct::run_report(options, caller);
                     });
}

int run(std::span<const char* const> arguments) {
  std::string_view name = arguments.empty() ? "" : arguments[0];
  name.remove_prefix(std::min(name.rfind('/') + 1, name.size()));  // npos + 1 is 0
  if (name == "jobstats") {
    return run_jobstats(arguments);
  }
  const std::string_view first = arguments.size() > 1 ? arguments[1] : "";
  const auto rest = arguments.subspan(std::min<std::size_t>(arguments.size(), 1));
  if (first == "report") {
    return run_command(rest, "cacct report", kReport, cacct::ReportOptions{},
                       cacct::add_report_flags, cacct::run_report);
  }
  if (first == "compare") {
    return run_command(rest, "cacct compare", kCompare, cacct::ReportOptions{.compare = true},
                       cacct::add_report_flags, cacct::run_report);
  }
  if (first == "check") {
    return run_command(cacct::check_arguments(rest), "cacct check", kCheck, cacct::CheckOptions{},
                       cacct::add_check_flags, cacct::run_check);
  }
  if (first == "digest") {
    return run_command(rest, "cacct digest", kDigest, cacct::DigestOptions{},
                       cacct::add_digest_flags, cacct::run_digest);
  }
  if (first == "gpus") {
    return run_command(rest, "cacct gpus", kGpus, cacct::GpusOptions{}, cacct::add_gpus_flags,
                       cacct::run_gpus);
  }
  if (first == "top") {
    return run_command(
        rest, "cacct top", kTop, nullptr, [](auto& /*flags*/, auto& /*options*/) {},
        [](auto& /*options*/, const cacct::Caller& caller) { return cacct::run_top(caller); });
  }
  if (first == "insight") {
    return run_command(rest, "cacct insight", kInsight, cacct::InsightOptions{},
                       cacct::add_insight_flags, cacct::run_insight);
  }
  return run_command(arguments, "cacct", kDescription, cacct::Options{}, cacct::add_flags,
                     cacct::run);
}

}  // namespace

int main(int argc, char** argv) {
  cacct::shed_environment();
  try {
    return run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::fputs("cacct: error: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
