#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/strings.h"
#include "base/time/time_text.h"
#include "cacct/api.h"
#include "cacct/commands.h"
#include "cacct/output/chart_lines.h"
#include "cacct/output/columns.h"
#include "cacct/output/job_list.h"
#include "cacct/output/pager.h"
#include "cacct/output/quantity.h"
#include "cacct/output/terminal.h"
#include "cacct/session.h"

namespace ceems::cacct {
namespace {

constexpr std::chrono::seconds kEvery{5};
constexpr std::int64_t kStripSeconds = 600;
constexpr std::size_t kStripCells = 20;
constexpr std::size_t kAskedAtOnce = 4;  // jobs whose measurements are asked for at a time

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(real_clock().now().time_since_epoch())
      .count();
}

/// What a job does now.
struct Activity {
  std::int64_t asked = 0;  ///< when, in seconds
  std::optional<double> cpu = {}, mem = {}, gpu = {}, watts = {};
  std::string strip = {};  ///< use of the GPUs, or else of the CPUs, in the last ten minutes
};

Activity activity_of(const std::vector<ChartLine>& lines, std::int64_t now, bool ascii) {
  Activity found{.asked = now};
  const ChartLine* shown = nullptr;
  for (const ChartLine& line : lines) {
    if (line.points.empty()) {
      continue;
    }
    const double last = line.points.back().second;
    const auto share =
        line.limit ? std::optional(100 * last / *line.limit) : std::optional<double>();
    if (line.chart == "cpu") {
      found.cpu = share;
      shown = shown == nullptr && line.limit ? &line : shown;
    } else if (line.chart == "memory") {
      found.mem = share;
    } else if (line.chart == "power") {
      found.watts = last;
    } else if (line.chart == "gpu_use") {
      found.gpu = last;
      shown = &line;
    }
  }
  if (shown != nullptr) {
    found.strip = strip_text(*shown, {.from_ms = (now - kStripSeconds) * 1000,
                                      .to_ms = now * 1000,
                                      .cells = kStripCells,
                                      .top = shown->chart == "cpu" ? shown->limit.value_or(1) : 100,
                                      .ascii = ascii});
  }
  return found;
}

/// The caller's running jobs.
class Top {
 public:
  Top(Api api, std::string cluster_id, std::string user)
      : api_(std::move(api)),
        cluster_id_(std::move(cluster_id)),
        user_(std::move(user)),
        ascii_(lacks_utf8()) {}

  Result<> refresh() {
    now_ = seconds_now();
    CEEMS_TRY(body,
              api_.jobs({.cluster_id = cluster_id_, .uuids = {}, .user = user_, .running = true}));
    CEEMS_TRY(jobs, parse_job_lines(body));
    jobs_ = std::move(jobs);
    std::erase_if(activities_, [this](const auto& one) {
      return std::ranges::find(jobs_, one.first, &JobLine::uuid) == jobs_.end();
    });
    return {};
  }

  /// Asks what the jobs do whose answer is the oldest, of those that are on the screen.
  void ask_activity(std::size_t shown, std::size_t at_once) {
    std::vector<const JobLine*> order;
    order.reserve(jobs_.size());
    for (const JobLine& job : jobs_) {
      order.push_back(&job);
    }
    order.resize(std::min(order.size(), shown));
    std::ranges::stable_sort(order, {},
                             [this](const JobLine* job) { return activities_[job->uuid].asked; });
    order.resize(std::min(order.size(), at_once));
    for (const JobLine* job : order) {
      auto body = api_.charts({.cluster_id = cluster_id_,
                               .uuid = job->uuid,
                               .metrics = "cpu,memory,power,gpu_use",
                               .by = "sum",
                               .from = now_ - kStripSeconds,
                               .to = now_,
                               .points = kStripCells});
      const auto lines = body ? parse_chart_lines(*body) : fail(std::move(body).error());
      activities_[job->uuid] = lines ? activity_of(*lines, now_, ascii_) : Activity{.asked = now_};
    }
  }

  /// A head, and a line for each job.
  [[nodiscard]] std::vector<std::string> lines(std::size_t width, const std::string& end) {
    Columns columns({{.title = "JOB"},
                     {.title = "NAME", .least = 8},
                     {.title = "ELAPSED", .right = true},
                     {.title = "CPU", .right = true, .leave_out = 5},
                     {.title = "MEM", .right = true, .leave_out = 3},
                     {.title = "GPU", .right = true, .leave_out = 6},
                     {.title = "POWER", .right = true, .leave_out = 7},
                     {.title = "LAST 10 MIN", .leave_out = 1},
                     {.title = "ENERGY", .right = true, .leave_out = 4},
                     {.title = "COST", .right = true, .leave_out = 2}});
    double watts = 0;
    bool averages = false;
    for (const JobLine& job : jobs_) {
      const Activity& active = activities_[job.uuid];
      const auto use = [&](std::optional<double> current, std::optional<double> average) {
        averages = averages || (!current && average);
        return current ? percent_text(*current) : average ? "~" + percent_text(*average) : "";
      };
      watts += active.watts.value_or(0);
      columns.add({job.id, job.name, elapsed_text(now_ - job.started_ms / 1000),
                   use(active.cpu, job.cpu), use(active.mem, job.mem), use(active.gpu, job.gpu),
                   active.watts ? power_text(*active.watts) : "", active.strip,
                   job.kwh ? energy_text(*job.kwh) : "", job.cost ? cost_text(*job.cost) : ""});
    }
    columns.drop_empty();
    columns.fit(width, ascii_ ? "~" : "…");
    std::vector<std::string> out{fmt::format("{} running job{}{}{}{}", jobs_.size(),
                                             jobs_.size() == 1 ? "" : "s",
                                             watts > 0 ? ", " + power_text(watts) : "",
                                             averages ? ", ~ average since the start" : "", end)};
    if (!jobs_.empty()) {
      std::ranges::copy(columns.lines(), std::back_inserter(out));
    }
    for (std::string& line : out) {
      line = shortened(line, width, "");
    }
    return out;
  }

  [[nodiscard]] std::int64_t now() const { return now_; }

 private:
  Api api_;
  std::string cluster_id_, user_;
  bool ascii_;
  std::int64_t now_ = 0;
  std::vector<JobLine> jobs_;
  std::map<std::string, Activity> activities_;
};

Result<> watch(Top& top) {
  LiveScreen screen;
  using Clock = std::chrono::steady_clock;
  std::string trouble;
  auto next = Clock::now();
  while (true) {
    if (Clock::now() >= next) {
      next = Clock::now() + kEvery;
      const auto refreshed = top.refresh();
      trouble = refreshed ? "" : printable(refreshed.error().message, 200);
      if (refreshed) {
        top.ask_activity(terminal_rows(), kAskedAtOnce);
      }
    }
    const std::string state =
        trouble.empty() ? start_text(top.now() * 1000, top.now(), true) : trouble;
    if (!LiveScreen::draw(top.lines(list_width(), fmt::format(" - {} - q quits", state)))) {
      return fail(ErrorCode::kUnavailable, "cannot write to standard output");
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    const char key = screen.wait(std::max(left, std::chrono::milliseconds(0)));
    if (key == 'q' || key == 'Q') {
      return {};
    }
  }
}

Result<> show_top(const Caller& caller) {
  CEEMS_TRY(session, open_session(caller));
  const Config& config = session.config;
  session.log.write(log::Level::kInfo, "top",
                    {{"user", caller.login}, {"uid", caller.uid}, {"gid", caller.gid}});
  CEEMS_TRY(api, Api::create(config.api_url, config.api_client, config.user_header, caller.login));
  Top top(std::move(api), config.cluster_id, caller.login);
  CEEMS_TRY(top.refresh());  // errors of the configuration end it before the screen is taken
  if (::isatty(STDOUT_FILENO) == 1) {
    return watch(top);
  }
  constexpr std::size_t kMaxJobs = 50;
  top.ask_activity(kMaxJobs, kMaxJobs);
  std::string text;
  for (const std::string& line : top.lines(list_width(), "")) {
    text += line + "\n";
  }
  return show(text, false) ? Result<>()
                           : fail(ErrorCode::kUnavailable, "cannot write to standard output");
}

}  // namespace

int run_top(const Caller& caller) {
  if (const auto shown = show_top(caller); !shown) {
    fmt::print(stderr, "cacct: error: {}\n", printable(shown.error().message, 400));
    return 1;
  }
  return 0;
}

}  // namespace ceems::cacct
