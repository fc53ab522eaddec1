#include "cacct/listing.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "cacct/output/chart_lines.h"
#include "cacct/output/job_list.h"
#include "cacct/output/pager.h"
#include "cacct/output/terminal.h"
#include "cacct/time_words.h"

namespace ceems::cacct {
namespace {

constexpr std::size_t kMaxCosts = 1000;  // jobs whose cost is asked for
constexpr std::size_t kMaxStrips = 50;   // jobs whose GPUs are asked for

std::string day_and_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  const bool midnight = parts.tm_hour == 0 && parts.tm_min == 0;
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(),
                                     midnight ? "%Y-%m-%d" : "%Y-%m-%d %H:%M", &parts)};
}

/// Adds what jobs cost. Without prices, or from a server that has no such list, jobs have none.
std::string add_costs(Api& api, const Question& question, std::vector<JobLine>& jobs) {
  auto site = jobs.empty() || jobs.size() > kMaxCosts ? Result<std::string>("") : api.site();
  const Prices prices = parse_prices(site.value_or(std::string()));
  if (!prices.known) {
    return {};
  }
  constexpr std::size_t kAtOnce = 100;
  std::map<std::pair<std::string, std::int64_t>, std::optional<double>> costs;
  for (std::size_t at = 0; at < jobs.size(); at += kAtOnce) {
    JobsQuestion asked{.cluster_id = question.cluster_id,
                       .uuids = {},
                       .user = "",
                       .of_others = question.all_users || !question.users.empty()};
    for (std::size_t i = at; i < std::min(at + kAtOnce, jobs.size()); ++i) {
      asked.uuids.push_back(jobs[i].uuid);
    }
    auto answer = api.jobs(asked);
    auto lines = answer ? parse_job_lines(*answer) : fail(std::move(answer).error());
    if (!lines) {
      return {};
    }
    for (const JobLine& line : *lines) {
      costs[{line.uuid, line.started_ms}] = line.cost;
    }
  }
  for (JobLine& job : jobs) {
    if (const auto found = costs.find({job.uuid, job.started_ms}); found != costs.end()) {
      job.cost = found->second;
    }
  }
  return prices.currency;
}

/// The strips of the GPUs of a job.
Result<std::vector<std::string>> strips_of(Api& api,
                                           const std::string& cluster_id,
                                           const JobLine& job,
                                           StripLook look,
                                           std::size_t width) {
  CEEMS_TRY(body, api.charts({.cluster_id = cluster_id,
                              .uuid = job.uuid,
                              .metrics = "gpu_use",
                              .by = "gpu",
                              .from = look.from_ms / 1000,
                              .to = look.to_ms / 1000,
                              .points = look.cells}));
  CEEMS_TRY(lines, parse_chart_lines(body));
  const auto missing =
      std::ranges::find_if(lines, [](const ChartLine& line) { return !line.collector.empty(); });
  const std::string collector = missing == lines.end() ? "" : missing->collector;
  auto strips = gpu_strips(std::move(lines), look, width);
  if (strips.empty()) {
    strips.push_back(collector.empty()
                         ? "  no measurements of its GPUs"
                         : fmt::format("  no measurements of its GPUs (collector {})", collector));
  }
  return strips;
}

void add_strips(Api& api,
                const std::string& cluster_id,
                std::vector<JobLine>& jobs,
                const JobListLook& look) {
  constexpr std::size_t kCells = 60;
  std::size_t asked = 0;
  for (JobLine& job : jobs) {
    const bool has_gpus = job.gpus > 0 || job.gpu;
    if (!has_gpus || job.started_ms <= 0) {
      continue;
    }
    if (++asked > kMaxStrips) {
      fmt::print(stderr, "cacct: the GPUs of the first {} jobs are shown; name jobs with -j\n",
                 kMaxStrips);
      return;
    }
    const StripLook strip{.from_ms = job.started_ms,
                          .to_ms = job.ended_ms > 0 ? job.ended_ms : look.now * 1000,
                          .cells = kCells,
                          .ascii = look.ascii};
    auto strips = strips_of(api, cluster_id, job, strip, look.width);
    if (!strips) {
      fmt::print(stderr, "cacct: GPUs of job {}: {}\n", job.id,
                 printable(strips.error().message, 200));
      continue;
    }
    job.below = std::move(*strips);
  }
}

}  // namespace

bool shows_listing(const Options& options, bool terminal) {
  const bool other_form = !options.format.empty() || options.long_format || options.json ||
                          options.parsable || options.html || options.csv || options.markdown;
  return (terminal || options.gpus) && !other_form;
}

std::string listing_text(Api& api,
                         const Options& options,
                         const Question& question,
                         const std::vector<Record>& units,
                         const std::vector<Record>& usage,
                         std::int64_t now) {
  std::vector<JobLine> jobs;
  std::ranges::transform(units, std::back_inserter(jobs), job_line);
  std::vector<JobLine> sums;
  std::ranges::transform(usage, std::back_inserter(sums), sum_line);
  JobListLook look{.width = list_width(),
                   .ascii = lacks_utf8(),
                   .bold = shows_bold(),
                   .totals = options.totals,
                   .now = now};
  look.currency = add_costs(api, question, jobs);
  if (options.gpus) {
    add_strips(api, question.cluster_id, jobs, look);
  }
  return draw_job_list(jobs, sums, look);
}

std::string no_jobs_text(const Options& options, const Question& question, std::int64_t now) {
  if (!options.jobs.empty()) {
    const bool shown = std::ranges::any_of(options.jobs, [](const std::string& id) {
      return id.find_first_of("_+") != std::string::npos;
    });
    return shown ? "No such job among those that you may see; of jobs that old versions of CEEMS "
                   "stored, only the JobIDRaw of sacct is known"
                 : "No such job among those that you may see";
  }
  const bool narrowed =
      !options.accounts.empty() || !options.account_filter.empty() || !question.users.empty();
  const std::string what = narrowed ? "No such jobs" : "No jobs";
  std::string when = " today";
  if (!options.end_time.empty()) {
    when = fmt::format(" from {} to {}", day_and_time(question.from), day_and_time(question.to));
  } else if (question.from != day_start(now)) {
    when = " since " + day_and_time(question.from);
  }
  constexpr std::int64_t kWeek = std::int64_t{7} * 86400;
  const std::int64_t back = now - question.from;
  const std::string_view hint = back < kWeek       ? "try -S now-1weeks"
                                : back < 5 * kWeek ? "try -S now-10weeks"
                                                   : "try an earlier -S";
  return fmt::format("{}{}; {}", what, when, hint);
}

}  // namespace ceems::cacct
